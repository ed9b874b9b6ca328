/** A line chart as SVG text. Pure. The horizontal axis has evenly spaced names; the vertical axis starts at zero. */
export interface LineChart {
  readonly title: string;
  readonly places: readonly string[];
  readonly lines: readonly { readonly name: string; readonly values: readonly number[] }[];
  /** A dashed line at the value that must not be exceeded. */
  readonly goal?: { readonly name: string; readonly value: number };
}

const WIDTH = 420;
const HEIGHT = 300;
const MARGIN = { left: 50, right: 20, top: 44, bottom: 62 };
const COLOURS = ["#1f5fa8", "#c2571a", "#3b7d3b"];

/** Several charts side by side. */
export function chartsAsSvg(charts: readonly LineChart[]): string {
  const width = WIDTH * charts.length;
  const body = charts.map((chart, index) => `<g transform="translate(${index * WIDTH} 0)">\n${drawn(chart)}\n</g>`);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${HEIGHT}" width="${width}" height="${HEIGHT}" font-family="sans-serif" font-size="12" fill="#222">`,
    `<title>${charts.map((chart) => chart.title).join("; ")}</title>`,
    `<rect width="${width}" height="${HEIGHT}" fill="#fff"/>`,
    ...body,
    "</svg>\n",
  ].join("\n");
}

function drawn(chart: LineChart): string {
  const scale = scaleOf(chart);
  return [
    `<text x="${MARGIN.left}" y="24" font-size="14" font-weight="bold">${chart.title}</text>`,
    ...scale.steps.map((step) => ruled(step, scale)),
    ...chart.places.map(
      (place, index) => `<text x="${scale.x(index)}" y="${HEIGHT - 40}" text-anchor="middle">${place}</text>`,
    ),
    ...(chart.goal ? [goalLine(chart.goal, scale)] : []),
    ...chart.lines.flatMap((line, index) => plotted(line, scale, index)),
  ].join("\n");
}

interface Scale {
  readonly x: (place: number) => number;
  readonly y: (value: number) => number;
  readonly steps: readonly number[];
}

function scaleOf({ places, lines, goal }: LineChart): Scale {
  const most = Math.max(goal?.value ?? 0, ...lines.flatMap((line) => line.values));
  const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100].find((each) => most / each <= 6) ?? most;
  const top = Math.ceil(most / step + 0.001);
  const high = HEIGHT - MARGIN.top - MARGIN.bottom;
  const wide = WIDTH - MARGIN.left - MARGIN.right;
  return {
    x: (place) => round(MARGIN.left + (wide * (place + 0.5)) / places.length),
    y: (value) => round(HEIGHT - MARGIN.bottom - (high * value) / (top * step)),
    steps: Array.from({ length: top + 1 }, (_, index) => round(index * step)),
  };
}

function ruled(step: number, { y }: Scale): string {
  return [
    `<line x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${y(step)}" y2="${y(step)}" stroke="#ddd"/>`,
    `<text x="${MARGIN.left - 8}" y="${round(y(step) + 4)}" text-anchor="end">${step}</text>`,
  ].join("\n");
}

function goalLine({ name, value }: { readonly name: string; readonly value: number }, { y }: Scale): string {
  return [
    `<line x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${y(value)}" y2="${y(value)}" stroke="#888" stroke-dasharray="6 4"/>`,
    `<text x="${WIDTH - MARGIN.right}" y="${round(y(value) - 6)}" text-anchor="end" fill="#666">${name}</text>`,
  ].join("\n");
}

function plotted(line: LineChart["lines"][number], { x, y }: Scale, index: number): readonly string[] {
  const colour = COLOURS[index % COLOURS.length];
  const points = line.values.map((value, place) => `${x(place)},${y(value)}`);
  const legend = MARGIN.left + index * 90;
  return [
    `<polyline points="${points.join(" ")}" fill="none" stroke="${colour}" stroke-width="2"/>`,
    ...line.values.map((value, place) => `<circle cx="${x(place)}" cy="${y(value)}" r="3.5" fill="${colour}"/>`),
    `<rect x="${legend}" y="${HEIGHT - 22}" width="12" height="4" fill="${colour}"/>`,
    `<text x="${legend + 18}" y="${HEIGHT - 16}">${line.name}</text>`,
  ];
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
