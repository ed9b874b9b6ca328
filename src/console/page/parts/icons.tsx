/** Drawn with strokes of the colour of the text. Beside words, which say the same; so no reader of screens reads them. */
import type { ComponentChildren } from "preact";

const SHAPES = {
  ok: <path d="M3.5 8.5l3 3 6-7" />,
  warning: (
    <>
      <path d="M8 2.2l6.2 11H1.8z" />
      <path d="M8 6.5v3.2M8 11.6v.1" />
    </>
  ),
  failed: (
    <>
      <path d="M5.4 1.8h5.2l3.6 3.6v5.2l-3.6 3.6H5.4l-3.6-3.6V5.4z" />
      <path d="M5.8 5.8l4.4 4.4M10.2 5.8l-4.4 4.4" />
    </>
  ),
  unknown: (
    <>
      <circle cx="8" cy="8" r="6" stroke-dasharray="2.4 2.3" />
      <path d="M6.4 6.4c.3-2 3.4-1.6 3.2.3C9.5 7.9 8 8 8 9.2M8 11.3v.1" />
    </>
  ),
  allowed: <path d="M2 8h10M8.5 4.5L12.5 8l-4 3.5" />,
  denied: (
    <>
      <circle cx="8" cy="8" r="5.8" />
      <path d="M4 4l8 8" />
    </>
  ),
  running: <path d="M13.5 8A5.5 5.5 0 1 1 8 2.5" />,
  waiting: <circle cx="8" cy="8" r="5" />,
  pod: (
    <>
      <path d="M8 1.8l5.4 3v6.4L8 14.2l-5.4-3V4.8z" />
      <path d="M2.8 5L8 8l5.2-3M8 8v6" />
    </>
  ),
  host: (
    <>
      <rect x="2" y="3" width="12" height="4.2" rx="1" />
      <rect x="2" y="8.8" width="12" height="4.2" rx="1" />
      <path d="M4.5 5.1v.1M4.5 10.9v.1" />
    </>
  ),
  service: (
    <>
      <circle cx="8" cy="3.6" r="1.8" />
      <circle cx="3.6" cy="12" r="1.8" />
      <circle cx="12.4" cy="12" r="1.8" />
      <path d="M7.2 5.2L4.4 10.4M8.8 5.2l2.8 5.2" />
    </>
  ),
  outside: (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M2 8h12M8 2c4.5 4.5 4.5 7.5 0 12M8 2c-4.5 4.5-4.5 7.5 0 12" />
    </>
  ),
  set: <path d="M5.5 2.5L4 13.5M12 2.5l-1.5 11M2.5 5.5h11.5M2 10.5h11.5" />,
  hidden: <path d="M2 8s2.2-4 6-4c1 0 2 .3 2.8.7M14 8s-2.2 4-6 4c-1 0-2-.3-2.8-.7M3 13L13 3" />,
  health: <path d="M1.5 8.5h3l2-5 3 9 2-4h3" />,
  flows: <path d="M2 4.5h9.5M9 2l2.8 2.5L9 7M14 11.5H4.5M7 9l-2.8 2.5L7 14" />,
  addresses: (
    <>
      <rect x="2" y="2" width="5" height="5" rx="1" />
      <rect x="9" y="2" width="5" height="5" rx="1" />
      <rect x="2" y="9" width="5" height="5" rx="1" />
      <rect x="9" y="9" width="5" height="5" rx="1" />
    </>
  ),
  close: <path d="M4 4l8 8M12 4l-8 8" />,
  copy: (
    <>
      <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
      <path d="M10.5 3V2.5h-8v8H3" />
    </>
  ),
  search: (
    <>
      <circle cx="7" cy="7" r="4.3" />
      <path d="M10.3 10.3L14 14" />
    </>
  ),
  pause: <path d="M5.5 3.5v9M10.5 3.5v9" />,
  play: <path d="M5 3.2l7.5 4.8L5 12.8z" />,
  sun: (
    <>
      <circle cx="8" cy="8" r="2.8" />
      <path d="M8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1" />
    </>
  ),
  moon: <path d="M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z" />,
  screen: (
    <>
      <rect x="2" y="3" width="12" height="8" rx="1.2" />
      <path d="M6 13.8h4" />
    </>
  ),
  keys: (
    <>
      <rect x="1.5" y="4" width="13" height="8.5" rx="1.5" />
      <path d="M4.5 7v.1M7 7v.1M9.5 7v.1M12 7v.1M5.5 10h5" />
    </>
  ),
  leave: <path d="M6.5 2.5h-4v11h4M7 8h7M11.5 5.5L14 8l-2.5 2.5" />,
  right: <path d="M6 3.5L10.5 8 6 12.5" />,
  arrow: <path d="M2 8h11.5M9.5 4l4 4-4 4" />,
} as const satisfies Readonly<Record<string, ComponentChildren>>;

export type IconName = keyof typeof SHAPES;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      {SHAPES[name]}
    </svg>
  );
}
