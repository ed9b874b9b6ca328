/** A curve by uPlot, in the colours of the page, with words for those who do not see it. */
import "uplot/dist/uPlot.min.css";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { colours } from "../appearance.ts";

interface CurveProps {
  /** What it shows, in words. */
  readonly label: string;
  readonly data: uPlot.AlignedData;
  readonly height: number;
  /** Anew when the colours change. Without width and height. */
  options(): Omit<uPlot.Options, "width" | "height">;
}

export function Curve({ label, data, height, options }: CurveProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const latest = useRef(data);
  latest.current = data;
  const drawn = colours.value;
  // New colours draw it again; data are set below.
  useEffect(() => {
    const { current } = place;
    if (current === null) return undefined;
    const width = () => Math.max(1, current.clientWidth);
    const made = new uPlot({ ...options(), width: width(), height }, latest.current, current);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: width(), height }));
    observer.observe(current);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [drawn, height]);
  useEffect(() => plot.current?.setData(data), [data]);
  return <div class="curve" ref={place} role="img" aria-label={label} style={{ height: `${height}px` }} />;
}
