"""The paper's figures and tables, made anew: each with its claim, its data, its picture and a verdict by rule.

G. Perez, L. Condat and M. Barlaud, *Near-linear time projection onto the l1,inf ball; application to sparse neural
networks*. An experiment is one file in ``figures/``; ``normball reproduce`` runs them.

Needs what the command line needs: ``pip install normball[cli]``.
"""
