/** Flows over time; a part of it that is chosen with the pointer becomes the time that is asked for. */
import { useMemo } from "preact/hooks";
import uPlot from "uplot";
import { counted } from "../../../counted.ts";
import type { FlowRecord } from "../../../flows/flow-record.ts";
import { colourOf } from "../appearance.ts";
import { Curve } from "../parts/curve.tsx";
import { clockWords, dateWords, numberWords } from "../words.ts";
import { timelineOf } from "./flow-timeline.ts";
import { setFilters } from "./set-filters.ts";

const HEIGHT = 58;

export function FlowTimeline({ records }: { readonly records: readonly FlowRecord[] }) {
  const timeline = useMemo(() => timelineOf(records), [records]);
  if (timeline === undefined) return null;
  const { at, all, denied, bucketSeconds } = timeline;
  const sumOfDenied = denied.reduce((sum, each) => sum + each, 0);
  const [first = 0] = at;
  const last = at.at(-1) ?? first;
  const label = `${counted(records.length, "flow")}, ${numberWords(sumOfDenied)} of them denied, from ${dateWords(first * 1_000)} to ${dateWords(last * 1_000)}`;
  const seconds = bucketSeconds;
  return (
    <div class="timeline" title="Choose a part with the pointer to see its flows only">
      <Curve label={label} data={[[...at], [...all], [...denied]]} height={HEIGHT} options={() => optionsOf(seconds)} />
    </div>
  );
}

function optionsOf(bucketSeconds: number): Omit<uPlot.Options, "width" | "height"> {
  const bars = uPlot.paths.bars?.({ size: [0.8, 22], align: 1 });
  const series = (name: string): uPlot.Series => ({
    fill: colourOf(name),
    width: 0,
    points: { show: false },
    ...(bars === undefined ? {} : { paths: bars }),
  });
  const text = colourOf("muted");
  return {
    padding: [4, 0, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
    select: { show: true, left: 0, top: 0, width: 0, height: 0 },
    scales: {
      x: { time: true, range: (_, min, max) => [min, max + bucketSeconds] },
      y: { range: (_, __, max) => [0, Math.max(4, max)] },
    },
    axes: [
      {
        stroke: text,
        size: 20,
        font: "11px system-ui",
        grid: { show: false },
        ticks: { show: false },
        values: (plot, splits) =>
          splits.map((each) =>
            isCut(plot, each) ? "" : clockWords(each * 1_000).slice(0, bucketSeconds < 30 ? 8 : 5),
          ),
        space: 90,
      },
      { show: false },
    ],
    series: [{}, series("bar-all"), series("bar-denied")],
    hooks: { setSelect: [chooseTime] },
  };
}

/** Half of the width of a label. */
const LABEL_PIXELS = 28;

/** Whether its label would end at the edge. */
function isCut(plot: uPlot, at: number): boolean {
  const left = plot.valToPos(at, "x");
  return left < LABEL_PIXELS || left > plot.over.clientWidth - LABEL_PIXELS;
}

/** Shorter ones are clicks. */
const LEAST_PIXELS = 6;

function chooseTime(plot: uPlot): void {
  const { left, width } = plot.select;
  if (width < LEAST_PIXELS) return;
  const at = (pixel: number) => String(Math.round(plot.posToVal(pixel, "x") * 1_000));
  setFilters({ range: undefined, since: at(left), until: at(left + width) });
}
