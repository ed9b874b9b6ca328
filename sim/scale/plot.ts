/** Curves over the number of nodes as SVG text: computed parts are dashed lines, measured points are filled. Pure. */
import type { Point } from "./fit.ts";

export interface ScaleChart {
  readonly title: string;
  readonly lines: readonly ScaleLine[];
}

export interface ScaleLine {
  readonly name: string;
  readonly computed: readonly Point[];
  readonly measured: readonly Point[];
  /** Measured with other means, drawn as a square. */
  readonly real?: Point;
}

const WIDTH = 440;
const HEIGHT = 300;
const COLUMNS = 2;
const MARGIN = { left: 58, right: 18, top: 40, bottom: 70 };
const COLOURS = ["#1f5fa8", "#c2571a", "#3b7d3b"];
const TICKS = [20, 100, 500, 2_000, 10_000];

export function scaleChartsAsSvg(charts: readonly ScaleChart[]): string {
  const [width, height] = [WIDTH * COLUMNS, HEIGHT * Math.ceil(charts.length / COLUMNS) + 30];
  const place = (index: number) => `translate(${(index % COLUMNS) * WIDTH} ${Math.floor(index / COLUMNS) * HEIGHT})`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="12" fill="#222">`,
    `<title>${charts.map(({ title }) => title).join("; ")}</title>`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...charts.map((chart, index) => `<g transform="${place(index)}">\n${drawn(chart)}\n</g>`),
    `<text x="${MARGIN.left}" y="${height - 12}" fill="#555">dashed: computed; dot: measured; square: 20 real agents on one machine, measured; horizontal: nodes</text>`,
    "</svg>\n",
  ].join("\n");
}

interface Scale {
  readonly x: (nodes: number) => number;
  readonly y: (value: number) => number;
  readonly steps: readonly number[];
}

function drawn({ title, lines }: ScaleChart): string {
  const scale = scaleOf(lines);
  return [
    `<text x="${MARGIN.left}" y="22" font-size="14" font-weight="bold">${title}</text>`,
    ...scale.steps.flatMap((step) => [
      `<line x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${scale.y(step)}" y2="${scale.y(step)}" stroke="#ddd"/>`,
      `<text x="${MARGIN.left - 8}" y="${scale.y(step) + 4}" text-anchor="end">${step.toLocaleString("en")}</text>`,
    ]),
    ...TICKS.map(
      (nodes) =>
        `<text x="${scale.x(nodes)}" y="${HEIGHT - MARGIN.bottom + 18}" text-anchor="middle">${nodes.toLocaleString("en")}</text>`,
    ),
    ...lines.flatMap((line, index) => plotted(line, scale, index)),
  ].join("\n");
}

function scaleOf(lines: readonly ScaleLine[]): Scale {
  const values = lines.flatMap(({ computed, measured, real }) => [...computed, ...measured, ...(real ? [real] : [])]);
  const most = Math.max(...values.map(({ y }) => y));
  const step = stepFor(most);
  const top = Math.ceil(most / step + 0.001);
  const [first = 1, last = 1] = [TICKS[0], TICKS.at(-1)];
  const wide = WIDTH - MARGIN.left - MARGIN.right - 20;
  const high = HEIGHT - MARGIN.top - MARGIN.bottom;
  return {
    x: (nodes) => rounded(MARGIN.left + 10 + (wide * Math.log(nodes / first)) / Math.log(last / first)),
    y: (value) => rounded(HEIGHT - MARGIN.bottom - (high * value) / (top * step)),
    steps: Array.from({ length: top + 1 }, (_, index) => Number((index * step).toPrecision(6))),
  };
}

/** One, two or five times a power of ten, so that there are at most six steps. */
function stepFor(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most / 6));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => most / step <= 6) ?? most;
}

function plotted({ name, computed, measured, real }: ScaleLine, { x, y }: Scale, index: number): readonly string[] {
  const colour = COLOURS[index % COLOURS.length];
  const points = computed.map((point) => `${x(point.x)},${y(point.y)}`).join(" ");
  const legend = MARGIN.left + index * 190;
  return [
    `<polyline points="${points}" fill="none" stroke="${colour}" stroke-width="1.5" stroke-dasharray="5 4"/>`,
    ...measured.map((point) => `<circle cx="${x(point.x)}" cy="${y(point.y)}" r="4" fill="${colour}"/>`),
    ...(real === undefined
      ? []
      : [`<rect x="${x(real.x) - 4}" y="${y(real.y) - 4}" width="8" height="8" fill="${colour}"/>`]),
    `<rect x="${legend}" y="${HEIGHT - 30}" width="12" height="4" fill="${colour}"/>`,
    `<text x="${legend + 18}" y="${HEIGHT - 24}">${name}</text>`,
  ];
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}
