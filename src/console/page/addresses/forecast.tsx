/** When a pool will be full if it goes on as it did. */
import { useMemo } from "preact/hooks";
import type uPlot from "uplot";
import type { Pool } from "../../api/addresses.ts";
import { colourOf } from "../appearance.ts";
import { now } from "../clock.ts";
import { Curve } from "../parts/curve.tsx";
import { dateWords, numberWords } from "../words.ts";
import { forecastLabel } from "./pool-words.ts";

const HEIGHT = 110;
const DAY = 86_400;

export function Forecast({ pool }: { readonly pool: Pool }) {
  const { forecast, counts } = pool;
  // The curve of one day is that of its end.
  const day = Math.floor(now.value / (DAY * 1_000)) * DAY;
  const data = useMemo(() => dataOf(pool, day), [day, counts.used, counts.size, forecast?.exhausted]);
  if (data === undefined) return null;
  return <Curve label={forecastLabel(pool)} data={data} height={HEIGHT} options={options} />;
}

/** Growth so far, growth to come, the size. */
function dataOf({ forecast, counts }: Pool, today: number): uPlot.AlignedData | undefined {
  if (forecast === undefined) return undefined;
  const size = Number(counts.size);
  const began = today - forecast.fromDays * DAY;
  const before = Math.max(0, counts.used - forecast.perDay * forecast.fromDays);
  const full = Math.max(today + DAY, forecast.exhausted / 1_000);
  return [
    [began, today, full],
    [before, counts.used, null],
    [null, counts.used, size],
    [size, size, size],
  ];
}

function options(): Omit<uPlot.Options, "width" | "height"> {
  const text = colourOf("muted");
  const font = "11px system-ui";
  return {
    padding: [8, 34, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: true }, y: { range: (_, __, max) => [0, max * 1.05] } },
    axes: [
      {
        stroke: text,
        font,
        size: 20,
        grid: { show: false },
        ticks: { show: false },
        space: 90,
        values: (_, splits) => splits.map((each) => dateWords(each * 1_000).slice(0, 10)),
      },
      {
        stroke: text,
        font,
        size: 52,
        grid: { stroke: colourOf("line"), width: 1 },
        ticks: { show: false },
        space: 30,
        values: (_, splits) => splits.map((each) => numberWords(each)),
      },
    ],
    series: [
      {},
      { stroke: colourOf("accent"), width: 2, points: { show: false } },
      { stroke: colourOf("accent"), width: 2, dash: [4, 4], points: { show: false } },
      { stroke: colourOf("failed"), width: 1, dash: [2, 3], points: { show: false } },
    ],
  };
}
