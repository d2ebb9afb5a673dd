// Brings the page to life: plots one after the other, so that the words can be read at once.
const config = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"], toImageButtonOptions: { format: "svg" } };

function draw(canvas) {
  const { traces, layout } = plots[canvas.dataset.plot]();
  return Plotly.react(canvas, traces, layout, { ...config, displayModeBar: narrow.matches ? false : "hover" });
}

const canvases = () => [...document.querySelectorAll(".canvas")];
const canvasOf = (key) => document.querySelector(`.canvas[data-plot="${key}"]`);

function choose(feature, jump) {
  chosen.feature = feature;
  const f = features, kept = data.values.row.indexOf(feature);
  byId("detail-name").textContent = f.feature[feature].trim() ? f.feature[feature] : "(no name)";
  byId("detail-facts").textContent =
    `Rank ${f.rank[feature]}, ${f.selected[feature] ? "in" : "not in"} the final model; selected in ${percent(f.frequency[feature])} of the runs; ` +
    `importance ${number(f.importance[feature])}; effect ${number(f.effect[feature])}; q = ${number(f.q_value[feature], 2)}. ` +
    (kept < 0 ? "The page holds the values of chosen features only: these are the means of the classes." : "");
  byId("feature-choice").value = String(kept);
  render();
  const done = draw(canvasOf("box"));
  if (jump && byId("detail").getBoundingClientRect().top < 0 || jump && narrow.matches) byId("detail").scrollIntoView({ block: "start" });
  return done;
}

function option(select, value, text) {
  const made = element("option", shorten(text, 60));
  made.value = value;
  select.append(made);
}

function startChoices() {
  const select = byId("feature-choice");
  option(select, "-1", "choose one");
  data.values.feature.forEach((name, i) => data.values.row[i] >= 0 && data.values.row[i] < features.feature.length && option(select, i, name));
  select.addEventListener("change", () => +select.value >= 0 && choose(data.values.row[+select.value], false));
  ["latent-x", "latent-y"].forEach((id, place) => {
    if (!byId(id)) return;
    data.latent.forEach((axis, i) => option(byId(id), i, axis.title));
    byId(id).value = String(Math.min(place, data.latent.length - 1));
    byId(id).addEventListener("change", () => draw(canvasOf("latent")));
  });
  byId("copy").addEventListener("click", async () => {
    const text = byId("methods-text");
    try {
      await navigator.clipboard.writeText(text.textContent);
      byId("copied").textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(text);
      byId("copied").textContent = "Selected: press Ctrl+C.";
    }
  });
}

function startClicks() {
  const pick = (feature) => feature >= 0 && feature < features.feature.length && choose(feature, true);
  canvasOf("ranking")?.on("plotly_click", (event) => pick(event.points[0].customdata));
  canvasOf("heatmap")?.on("plotly_click", (event) => {
    const point = event.points.find((each) => each.data.type === "heatmap");
    if (point) pick(data.values.row[data.values.heat_features[point.y]]);
  });
}

const chosen = { feature: Math.max(0, data.values.row.length ? data.values.row[0] : 0) };

async function start() {
  document.documentElement.classList.remove("static");
  startChoices();
  startTable();
  if (features.feature.length) await choose(chosen.feature, false);
  for (const canvas of canvases()) {
    await draw(canvas);
    await new Promise((resolve) => setTimeout(resolve));
  }
  startClicks();
  const again = () => canvases().forEach(draw);
  narrow.addEventListener("change", again);
  dark.addEventListener("change", again);
  document.documentElement.dataset.ready = "yes";
}

start();
