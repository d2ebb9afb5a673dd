// The feature table: order and filter are lists of row numbers; only one page of rows is ever in the document.
const PAGE = 25;
const names = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
const features = data.features;
const columns = [
  { key: "rank", title: "rank", minor: true },
  { key: "feature", title: "feature", text: true },
  { key: "selected", title: "in the model", descending: true, minor: true },
  { key: "frequency", title: "frequency", descending: true },
  { key: "importance", title: "importance", descending: true },
  { key: "direction", title: "higher in", text: true },
  { key: "effect", title: "effect", descending: true },
  { key: "p_value", title: "p", minor: true },
  { key: "q_value", title: "q" },
];
const table = { key: "rank", descending: false, page: 0, order: range(features.feature.length), rows: [] };
let lower = null;

function compare(key) {
  const column = features[key];
  if (key === "feature") return (a, b) => names.compare(column[a].slice(0, 200), column[b].slice(0, 200)) || a - b;
  if (key === "direction") return (a, b) => names.compare(className(column[a]), className(column[b])) || a - b;
  return (a, b) => column[a] - column[b] || a - b;
}

function sortBy(key, descending) {
  const missing = (i) => features[key][i] === null; // they stay at the end, whichever way
  const by = compare(key), all = range(features.feature.length), known = all.filter((i) => !missing(i));
  known.sort(descending ? (a, b) => -by(a, b) : by);
  Object.assign(table, { key, descending, order: known.concat(all.filter(missing)) });
  filter();
}

function filter() {
  const wanted = byId("search").value.trim().toLowerCase(), only = byId("only-selected").checked;
  if (wanted && !lower) lower = features.feature.map((name) => name.toLowerCase());
  table.rows = table.order.filter((i) => (!only || features.selected[i]) && (!wanted || lower[i].includes(wanted)));
  table.page = 0;
  render();
}

function cell(i, column) {
  const value = features[column.key][i];
  const made = element("td", undefined, (column.text ? "text " : "") + (column.minor ? "minor" : ""));
  if (column.key === "feature") {
    const link = element("button", value.trim() ? value : "(no name)", "link");
    link.type = "button";
    link.dir = "auto";
    link.title = shorten(value, 300);
    link.addEventListener("click", () => choose(i, true));
    made.append(link);
  } else if (column.key === "frequency") {
    const bar = element("span", undefined, "bar"), fill = element("i");
    fill.style.width = 100 * (value || 0) + "%";
    bar.append(fill);
    made.append(percent(value), bar);
  } else if (column.key === "selected") made.textContent = value ? "yes" : "–";
  else if (column.key === "direction") {
    made.append(element("bdi", className(value)));
    made.title = shorten(className(value), 300);
  } else made.textContent = column.key === "rank" ? value : number(value);
  return made;
}

function render() {
  const body = document.querySelector("#feature-table tbody"), from = table.page * PAGE;
  const made = table.rows.slice(from, from + PAGE).map((i) => {
    const row = element("tr");
    if (i === chosen.feature) row.setAttribute("aria-current", "true");
    row.append(...columns.map((column) => cell(i, column)));
    return row;
  });
  body.replaceChildren(...made);
  const last = Math.min(from + PAGE, table.rows.length), count = table.rows.length.toLocaleString("en");
  byId("shown").textContent = table.rows.length ? `${(from + 1).toLocaleString("en")} to ${last.toLocaleString("en")} of ${count}` : "no feature has such a name";
  byId("previous").disabled = table.page === 0;
  byId("next").disabled = last >= table.rows.length;
  for (const head of document.querySelectorAll("#feature-table th")) {
    head.setAttribute("aria-sort", head.dataset.key !== table.key ? "none" : table.descending ? "descending" : "ascending");
  }
}

// A spreadsheet takes text that begins like this for a formula; an apostrophe in front makes it text again.
const quoted = (text) => '"' + (/^\s*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r]/.test(text) ? "'" : "") + text.replace(/"/g, '""') + '"';

function csv() {
  const heads = columns.map((column) => column.key).concat(data.classes.map((name) => "mean:" + name));
  const lines = [heads.map(quoted).join(",")];
  for (const i of table.rows) {
    const line = columns.map(({ key }) => {
      const value = features[key][i];
      if (key === "feature") return quoted(value);
      if (key === "direction") return quoted(className(value));
      if (key === "selected") return value ? "True" : "False";
      return value === null ? "" : String(value);
    });
    lines.push(line.concat(features.means.map((m) => (m[i] === null ? "" : String(m[i])))).join(","));
  }
  return lines.join("\r\n") + "\r\n";
}

function download() {
  const link = element("a");
  link.href = URL.createObjectURL(new Blob(["\ufeff", csv()], { type: "text/csv" }));
  link.download = "features.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function startTable() {
  const head = document.querySelector("#feature-table thead tr");
  for (const column of columns) {
    const th = element("th", undefined, (column.text ? "text " : "") + (column.minor ? "minor" : ""));
    th.scope = "col";
    th.dataset.key = column.key;
    const button = element("button", column.title);
    button.type = "button";
    button.addEventListener("click", () => sortBy(column.key, table.key === column.key ? !table.descending : Boolean(column.descending)));
    th.append(button);
    head.append(th);
  }
  byId("search").addEventListener("input", filter);
  byId("only-selected").addEventListener("change", filter);
  byId("download").addEventListener("click", download);
  byId("previous").addEventListener("click", () => { table.page -= 1; render(); });
  byId("next").addEventListener("click", () => { table.page += 1; render(); });
  sortBy("rank", false);
}
