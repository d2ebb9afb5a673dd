// Each plot is a function from the data to what Plotly draws: {traces, layout}.
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function base(height, extra = {}) {
  const ink = style("--ink"), line = style("--line");
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true, title: { standoff: 8 } };
  const layout = {
    height, font: { family: getComputedStyle(document.body).fontFamily, size: narrow.matches ? 11 : 12, color: ink },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 50, r: 12, t: 12, b: 44 },
    hoverlabel: { bgcolor: style("--panel"), bordercolor: line, font: { color: ink }, align: "left", namelength: -1 },
    legend: { orientation: "h", y: -0.16, yanchor: "top", x: 0 }, hovermode: "closest",
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom", ...extra,
  };
  for (const key of new Set(["xaxis", "yaxis", ...Object.keys(extra).filter((k) => /^[xy]axis\d*$/.test(k))])) {
    const own = extra[key] || {};
    layout[key] = { ...axis, ...own, title: { ...axis.title, ...(own.title || {}) } };
  }
  return layout;
}

// Round numbers inside the range of the values, written out: digits between decades are read as numbers of their own.
function logAxis(values) {
  const known = values.filter((v) => v > 0), low = Math.log10(Math.min(...known)), high = Math.log10(Math.max(...known));
  const steps = high - low > 3 ? [1] : high - low > 1.5 ? [1, 3] : [1, 2, 5];
  const all = range(Math.ceil(high) - Math.floor(low) + 1).flatMap((i) => steps.map((s) => s * 10 ** (Math.floor(low) + i)));
  const inside = all.filter((v) => Math.log10(v) > low - 0.1 && Math.log10(v) < high + 0.1), kept = inside.length ? inside : known;
  return { type: "log", tickvals: kept, ticktext: kept.map((v) => number(v)), range: [low - 0.1, high + 0.1] };
}

const title = (text) => ({ title: { text } });
const shares = { tickformat: ".0%" };
const diagonal = () => ({ x: [0, 1], y: [0, 1], mode: "lines", line: { color: "#888888", dash: "dash", width: 1 }, hoverinfo: "skip", showlegend: false });

const plots = {
  methods() {
    const rows = data.methods, at = range(rows.length);
    const bar = (row, way) => (row.low === null ? 0 : Math.max(0, way * ((way > 0 ? row.high : row.low) - row.mean)));
    const trace = {
      x: rows.map((r) => r.mean), y: at, mode: "markers", type: "scatter", showlegend: false, hoverinfo: "text",
      marker: { size: 11, color: at.map((i) => (i ? "#777777" : data.colours[0])), symbol: at.map((i) => (i ? "square" : "circle")) },
      error_x: { type: "data", symmetric: false, array: rows.map((r) => bar(r, 1)), arrayminus: rows.map((r) => bar(r, -1)), thickness: 2, width: 5, color: "#888888" },
      text: rows.map((r) => `${plain(r.title, 60)}<br>${percent(r.mean, 1)}` + (r.low === null ? "" : `, ${percent(r.low, 1)} to ${percent(r.high, 1)}`)),
    };
    const layout = base(70 + 42 * rows.length, {
      xaxis: { ...shares, ...title("accuracy") },
      yaxis: { tickvals: at, ticktext: rows.map((r) => plain(r.title, 30)), range: [rows.length - 0.5, -0.5], zeroline: false, gridcolor: "rgba(0,0,0,0)" },
      shapes: [{ type: "line", x0: data.chance, x1: data.chance, y0: 0, y1: 1, yref: "paper", line: { dash: "dash", width: 1.5, color: "#888888" } }],
      annotations: [{ x: data.chance, y: 1, yref: "paper", yanchor: "bottom", text: "chance", showarrow: false, font: { size: 11 } }],
    });
    layout.margin.t = 24;
    return { traces: [trace], layout };
  },

  latent() {
    const x = data.latent[+byId("latent-x").value], y = data.latent[+byId("latent-y").value], s = data.samples;
    const said = (i) => `<b>${plain(s.name[i], 60)}</b><br>${plain(className(s.label[i]), 40)}` +
      (s.label[i] === s.predicted[i] ? "" : `<br>misclassified as ${plain(className(s.predicted[i]), 40)}`) + `<br>confidence ${percent(s.confidence[i])}`;
    const group = (keep, extra) => {
      const rows = range(s.name.length).filter(keep);
      return { x: rows.map((i) => x.values[i]), y: rows.map((i) => y.values[i]), text: rows.map(said), mode: "markers", type: "scatter", hoverinfo: "text", ...extra };
    };
    const traces = data.classes.map((name, c) => group((i) => s.label[i] === c, {
      name: plain(name, 30), marker: { color: colour(c), symbol: symbol(c), size: 8, opacity: 0.85 } }));
    const wrong = group((i) => s.label[i] !== s.predicted[i], {
      name: "misclassified", marker: { color: style("--ink"), symbol: "x-thin", size: 10, line: { width: 2, color: style("--ink") } } });
    if (wrong.x.length) traces.push(wrong);
    return { traces, layout: base(narrow.matches ? 400 : 520, { xaxis: title(plain(x.title, 50)), yaxis: title(plain(y.title, 50)) }) };
  },

  path() {
    const p = data.path, byRadius = p.radius.every((r) => r > 0), x = byRadius ? p.radius : p.n_features;
    const text = range(x.length).map((i) => `${number(p.n_features[i], 6)} features` + (byRadius ? `, radius ${number(p.radius[i])}` : "") +
      `<br>accuracy ${percent(p.accuracy[i], 1)} ± ${percent(p.error[i], 1)}` + (p.chosen[i] ? "<br><b>chosen</b>" : ""));
    const chosen = range(x.length).filter((i) => p.chosen[i]);
    const mark = (y, axis, shown) => ({ x: chosen.map((i) => x[i]), y: chosen.map((i) => y[i]), yaxis: axis, mode: "markers", name: "chosen", showlegend: shown,
      hoverinfo: "skip", marker: { symbol: "diamond", size: 13, color: data.colours[1] } });
    const line = (y, axis, name, i, extra) => ({ x, y, text, yaxis: axis, name, mode: "lines+markers", hoverinfo: "text", line: { color: data.colours[i] }, marker: { symbol: data.symbols[i], size: 7 }, ...extra });
    return {
      traces: [
        line(p.accuracy, "y", "accuracy", 0, { error_y: { type: "data", array: p.error, color: data.colours[0], thickness: 1, width: 3 } }), mark(p.accuracy, "y", true),
        line(p.n_features, "y2", "number of features", 2, {}), mark(p.n_features, "y2", false)],
      layout: base(430, {
        xaxis: { ...logAxis(x), ...title(byRadius ? "radius" : "number of features"), anchor: "y2" },
        yaxis: { ...shares, domain: [0.42, 1], ...title("accuracy") }, yaxis2: { ...logAxis(p.n_features), domain: [0, 0.36], ...title("features") } }),
    };
  },

  ranking() {
    const f = data.features, rows = range(Math.min(25, f.feature.length)).filter((i) => f.selected[i] || f.frequency[i] > 0);
    const traces = [...new Set(rows.map((i) => f.direction[i]))].sort((a, b) => a - b).map((c) => {
      const mine = rows.filter((i) => f.direction[i] === c);
      return {
        type: "bar", orientation: "h", width: 0.75, name: "higher in " + plain(className(c), 24), x: mine.map((i) => f.importance[i]), y: mine.map((i) => rows.indexOf(i)), customdata: mine,
        marker: { color: colour(c) }, hoverinfo: "text", textposition: "outside", cliponaxis: false, textfont: { size: 10 },
        text: mine.map((i) => percent(f.frequency[i])),
        hovertext: mine.map((i) => `<b>${plain(f.feature[i], 60)}</b><br>importance ${number(f.importance[i])}<br>selected in ${percent(f.frequency[i])} of the runs<br>q = ${number(f.q_value[i], 2)}`) };
    });
    const most = Math.max(...rows.map((i) => f.importance[i] || 0), 1e-12), height = 90 + 21 * Math.max(rows.length, 6);
    const layout = base(height, {
      xaxis: { ...title(narrow.matches ? "importance" : "importance (label: selected in … of the runs)"), range: [0, 1.14 * most] }, barmode: "overlay",
      yaxis: { tickvals: range(rows.length), ticktext: rows.map((i) => plain(f.feature[i])), range: [rows.length - 0.4, -0.6], gridcolor: "rgba(0,0,0,0)" } });
    layout.legend.y = -64 / (height - 60);
    return { traces, layout };
  },

  heatmap() {
    const v = data.values, s = data.samples, columns = v.heat_samples, rows = v.heat_features;
    const z = v.z;
    const name = rows.map((f) => plain(v.feature[f], 60));
    const who = columns.map((i) => `${plain(s.name[i], 60)}<br>${plain(className(s.label[i]), 40)}`);
    const text = rows.map((f, r) => columns.map((i, c) => `<b>${name[r]}</b><br>${who[c]}<br>${v.unit} ${number(v.columns[f][i])}, ${number(z[r][c], 2)} standard deviations`));
    const strip = data.classes.map((label, c) => ({
      type: "bar", name: plain(label, 30), yaxis: "y2", hoverinfo: "skip", marker: { color: colour(c), line: { width: 0 } }, width: 1,
      x: range(columns.length).filter((k) => s.label[columns[k]] === c), y: columns.filter((i) => s.label[i] === c).map(() => 1) }));
    const height = Math.max(260, 130 + 16 * rows.length), top = 14 / (height - 80);
    const layout = base(height, {
      xaxis: { showticklabels: false, ticks: "", showgrid: false, zeroline: false, range: [-0.5, columns.length - 0.5], ...title("samples"), anchor: "y" },
      yaxis: { domain: [0, 1 - 1.5 * top], tickvals: range(rows.length), ticktext: rows.map((f) => plain(v.feature[f])), range: [rows.length - 0.5, -0.5], showgrid: false, zeroline: false },
      yaxis2: { domain: [1 - top, 1], visible: false, fixedrange: true, range: [0, 1] }, bargap: 0, barmode: "overlay" });
    layout.legend.y = -36 / (height - 80);
    return { traces: [{
      type: "heatmap", z, text, hoverinfo: "text", zmin: -3, zmax: 3, colorscale: [[0, "#2166ac"], [0.5, "#f7f7f7"], [1, "#b2182b"]],
      colorbar: { thickness: 10, len: 0.8, tickvals: [-3, 0, 3], outlinewidth: 0, ...(narrow.matches ? { tickfont: { size: 9 } } : {}) } }, ...strip], layout };
  },

  confusion() {
    const counts = data.confusion, n = counts.length, total = counts.map((row) => Math.max(1, row.reduce((a, b) => a + b, 0)));
    const z = counts.map((row, i) => row.map((value) => value / total[i]));
    const names = data.classes.map((name) => plain(name, n > 3 ? 12 : 18));
    const cells = range(n).flatMap((i) => range(n).map((j) => ({
      x: j, y: i, showarrow: false, text: n > 8 && !counts[i][j] ? "" : String(counts[i][j]), font: { size: n > 14 ? 9 : n > 8 ? 11 : 14, color: z[i][j] > 0.55 ? "#ffffff" : "#1c2430" } })));
    return {
      traces: [{ type: "heatmap", z, showscale: false, zmin: 0, zmax: 1, xgap: 2, ygap: 2, colorscale: [[0, "#eef4fa"], [1, "#08519c"]], hoverinfo: "text",
        text: counts.map((row, i) => row.map((value, j) => `true: ${plain(data.classes[i], 40)}<br>predicted: ${plain(data.classes[j], 40)}<br>${value} samples, ${percent(z[i][j], 1)} of the row`)) }],
      layout: base(n < 6 ? 400 : Math.min(640, 200 + 40 * n), { annotations: cells,
        xaxis: { tickvals: range(n), ticktext: names, showgrid: false, zeroline: false, ...title("predicted class") },
        yaxis: { tickvals: range(n), ticktext: names, showgrid: false, zeroline: false, range: [n - 0.5, -0.5], ...title("true class") } }),
    };
  },

  roc() {
    const dash = ["solid", "dash", "dashdot", "dot"];
    const traces = data.roc.map((c, i) => ({ x: c.x, y: c.y, mode: "lines", name: `${plain(c.name, 30)}: ${c.auc.toFixed(3)}`, line: { color: colour(data.classes.indexOf(c.name)), dash: dash[turn(i) % 4], width: 2 },
      hoverinfo: "text", text: c.x.map((x, k) => `${plain(c.name, 40)}<br>false positives ${percent(x)}, true positives ${percent(c.y[k])}`) }));
    return { traces: [diagonal(), ...traces], layout: base(400 + 11 * Math.max(0, data.roc.length - 4), { showlegend: true, xaxis: { ...title("false positive rate"), range: [-0.02, 1.02] }, yaxis: { ...title("true positive rate"), range: [-0.02, 1.04] } }) };
  },

  calibration() {
    const c = data.calibration;
    const trace = { x: c.x, y: c.y, mode: "lines+markers", type: "scatter", showlegend: false, line: { color: data.colours[0] }, marker: { size: 8 }, hoverinfo: "text",
      error_y: { type: "data", symmetric: false, array: c.high.map((h, i) => Math.max(0, h - c.y[i])), arrayminus: c.low.map((l, i) => Math.max(0, c.y[i] - l)), thickness: 1, width: 3 },
      text: c.x.map((x, i) => `${c.n[i]} samples<br>stated ${percent(x)}, right ${percent(c.y[i])}`) };
    const low = Math.max(0, Math.min(...c.x) - 0.05);
    return { traces: [diagonal(), trace], layout: base(400, { xaxis: { ...shares, ...title("stated confidence"), range: [low, 1.02] }, yaxis: { ...shares, ...title("share that is right"), range: [-0.02, 1.04] } }) };
  },

  losses() {
    const traces = data.losses.flatMap((c, i) => {
      const line = (y, name, dash) => ({ x: c.epoch, y, name, mode: "lines", line: { color: colour(i), dash }, hovertemplate: "epoch %{x}: %{y:.4g}<extra></extra>" });
      return [line(c.loss, plain(c.stage, 30), "solid"), ...(c.validation ? [line(c.validation, plain(c.stage, 30) + ", held out", "dash")] : [])];
    });
    return { traces, layout: base(430, { showlegend: true, xaxis: title("epoch"), yaxis: title("loss") }) };
  },

  permutations() {
    const line = { x: [data.accuracy, data.accuracy], y: [0, 1], yaxis: "y2", mode: "lines", name: "with the true labels", line: { color: data.colours[1], width: 3 }, hoverinfo: "text", text: ["", ""].map(() => `true labels: ${percent(data.accuracy, 1)}`) };
    return {
      traces: [{ type: "histogram", x: data.permutations, name: "with shuffled labels", marker: { color: "#888888" }, nbinsx: Math.min(30, Math.max(5, Math.round(data.permutations.length / 5))) }, line],
      layout: base(430, { showlegend: true, xaxis: { ...shares, ...title("accuracy") }, yaxis: { ...title("shuffles"), nticks: Math.min(8, data.permutations.length + 1), tickformat: "d" }, yaxis2: { overlaying: "y", range: [0, 1], visible: false } }),
    };
  },

  box() {
    const f = data.features, column = data.values.columns[data.values.row.indexOf(chosen.feature)], s = data.samples;
    const ticks = { tickvals: range(data.classes.length), ticktext: data.classes.map((name) => plain(name, data.classes.length > 3 ? 12 : 20)), range: [-0.6, data.classes.length - 0.4], zeroline: false };
    const layout = base(360, { showlegend: false, xaxis: ticks, yaxis: { ...title(column ? data.values.unit : "mean"), zeroline: false } });
    if (!column) {
      return { layout, traces: [{ type: "scatter", mode: "markers", x: range(data.classes.length), y: f.means.map((m) => m[chosen.feature]), hovertemplate: "mean %{y:.4g}<extra></extra>",
        marker: { size: 14, color: data.classes.map((_, c) => colour(c)), symbol: data.classes.map((_, c) => symbol(c)) } }] };
    }
    const traces = data.classes.map((name, c) => {
      const mine = range(column.length).filter((i) => s.label[i] === c && column[i] !== null);
      return { type: "box", x: mine.map(() => c), y: mine.map((i) => column[i]), name: plain(name, 30), boxpoints: "all", jitter: 0.5, pointpos: 0, hoveron: "points", hoverinfo: "text", fillcolor: "rgba(128,128,128,0.12)",
        line: { color: colour(c), width: 1.5 }, marker: { color: colour(c), symbol: symbol(c), size: 5, opacity: 0.75 }, text: mine.map((i) => `${plain(s.name[i], 60)}<br>${number(column[i], 4)}`) };
    });
    return { traces, layout };
  },
};
