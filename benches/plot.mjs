// Draws the time of a call by the length of the history, with logarithmic axes.
import { engines } from "./engines/index.mjs";

const width = 760;
const height = 420;
const area = { left: 70, right: 560, top: 30, bottom: 360 };
const lengths = [0, 100, 1_000, 10_000];
// The colours of Okabe and Ito, which most colour-blind people can distinguish.
const colours = { lockgate: "#d55e00", hand: "#767676", ai: "#0072b2", langgraph: "#009e73", "langgraph-sqlite": "#56b4e9", openai: "#cc79a7", mastra: "#b8860b", pi: "#5b4b8a" };

/** The plot, as the text of an SVG file. */
export function plot(results) {
  const lines = Object.keys(engines)
    .map((name) => ({ name, points: lengths.map((n, at) => ({ at, figure: results.figure(`call.${n}`, name) })).filter(({ figure }) => figure) }))
    .filter(({ points }) => points.length > 0);
  const values = lines.flatMap(({ points }) => points.map(({ figure }) => figure.value));
  const [low, high] = [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(Math.max(...values)))];
  const x = (at) => area.left + (at / (lengths.length - 1)) * (area.right - area.left);
  const y = (value) => area.bottom - ((Math.log10(value) - low) / (high - low)) * (area.bottom - area.top);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">
<title>Time of a call by the length of the history</title>
<rect width="${width}" height="${height}" fill="#fff"/>
${axes({ low, high, x, y })}
${lines.map((line) => drawn(line, { x, y })).join("\n")}
${labels(lines, y)}
</svg>
`;
}

function axes({ low, high, x, y }) {
  const powers = Array.from({ length: high - low + 1 }, (_, at) => low + at);
  const across = powers.map((power) => {
    const at = y(10 ** power).toFixed(1);
    return `<path d="M${area.left} ${at}H${area.right}" stroke="#e3e3e3"/><text x="${area.left - 8}" y="${at}" dy="4" text-anchor="end" fill="#444">${time(10 ** power)}</text>`;
  });
  const along = lengths.map((n, at) => `<text x="${x(at).toFixed(1)}" y="${area.bottom + 20}" text-anchor="middle" fill="#444">${n.toLocaleString("en")}</text>`);
  const below = `<text x="${(area.left + area.right) / 2}" y="${area.bottom + 44}" text-anchor="middle" fill="#444">messages before the call</text>`;
  const above = `<text x="${area.left}" y="18" fill="#444">time of a call (a question, a tool, an answer, saved)</text>`;
  return [...across, ...along, below, above].join("\n");
}

const time = (microseconds) => (microseconds < 1_000 ? `${microseconds} µs` : microseconds < 1_000_000 ? `${microseconds / 1_000} ms` : `${microseconds / 1_000_000} s`);

function drawn({ name, points }, { x, y }) {
  const path = points.map(({ at, figure }, n) => `${n === 0 ? "M" : "L"}${x(at).toFixed(1)} ${y(figure.value).toFixed(1)}`).join("");
  const dots = points.map(({ at, figure }) => `<circle cx="${x(at).toFixed(1)}" cy="${y(figure.value).toFixed(1)}" r="3" fill="${colours[name]}"/>`);
  return `<path d="${path}" fill="none" stroke="${colours[name]}" stroke-width="${name === "lockgate" ? 3.5 : 1.5}"/>${dots.join("")}`;
}

// The labels are beside the ends of the lines, and moved apart where they would overlap.
function labels(lines, y) {
  let last = -Infinity;
  return lines
    .map(({ name, points }) => ({ name, at: y(points.at(-1).figure.value) }))
    .toSorted((one, other) => one.at - other.at)
    .map(({ name, at }) => {
      last = Math.max(at, last + 16);
      const weight = name === "lockgate" ? ' font-weight="bold"' : "";
      return `<text x="${area.right + 10}" y="${last.toFixed(1)}" dy="4" fill="${colours[name]}"${weight}>${engines[name].title}</text>`;
    })
    .join("\n");
}
