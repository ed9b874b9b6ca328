/** Which rows of a long list are in sight, by @tanstack/virtual-core. */
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from "@tanstack/virtual-core";
import { useLayoutEffect, useReducer, useState } from "preact/hooks";

type Options = VirtualizerOptions<HTMLDivElement, HTMLDivElement>;

/** `covered`: so many pixels at the top are covered by something else. */
export function useVirtualizer(
  scroller: { readonly current: HTMLDivElement | null },
  count: number,
  height: number,
  covered = 0,
) {
  const [, draw] = useReducer((drawn: number, _: undefined) => drawn + 1, 0);
  const options: Options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    overscan: 12,
    scrollPaddingStart: covered,
    onChange: () => draw(undefined),
  };
  const [virtual] = useState(() => new Virtualizer<HTMLDivElement, HTMLDivElement>(options));
  virtual.setOptions(options);
  useLayoutEffect(() => virtual._didMount(), [virtual]);
  useLayoutEffect(() => virtual._willUpdate());
  useLayoutEffect(() => virtual.measure(), [virtual, height]);
  return virtual;
}

export function useWidth(element: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(1_000);
  useLayoutEffect(() => {
    const { current } = element;
    if (current === null) return undefined;
    const observer = new ResizeObserver(() => setWidth(current.clientWidth));
    observer.observe(current);
    setWidth(current.clientWidth);
    return () => observer.disconnect();
  }, [element]);
  return width;
}
