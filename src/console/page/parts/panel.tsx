/** The details of one thing, beside the list or, where it is narrow, above it. Escape closes it and gives the focus back. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./icons.tsx";

interface PanelProps {
  readonly label: string;
  /** A new one takes the focus to the panel. */
  readonly about: string;
  readonly head: ComponentChildren;
  readonly children: ComponentChildren;
  close(): void;
}

export function Panel({ label, about, head, children, close }: PanelProps) {
  const panel = useRef<HTMLElement>(null);
  const body = useRef<HTMLDivElement>(null);
  // Each new subject begins at its top.
  useEffect(() => {
    body.current?.scrollTo(0, 0);
  }, [about]);
  useAlone(panel);
  useEffect(() => {
    const from = document.activeElement;
    panel.current?.focus({ preventScroll: true });
    return () => {
      if (from instanceof HTMLElement && from.isConnected) from.focus({ preventScroll: true });
    };
  }, []);
  return (
    <aside
      class="panel"
      aria-label={label}
      ref={panel}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        close();
      }}
    >
      <header class="panel-head">
        <div class="panel-title">{head}</div>
        <button
          type="button"
          class="quiet icon-button"
          aria-label="Close the details"
          title="Close (Esc)"
          onClick={close}
        >
          <Icon name="close" />
        </button>
      </header>
      <div class="panel-body" ref={body} tabIndex={0} role="group" aria-label={label}>
        {children}
      </div>
    </aside>
  );
}

/** As in the style: the panel covers the view. */
const COVERING = "(max-width: 760px)";

/** What the panel covers takes no focus meanwhile. */
function useAlone(panel: { readonly current: HTMLElement | null }): void {
  useEffect(() => {
    const media = matchMedia(COVERING);
    const covered = [panel.current?.previousElementSibling, document.querySelector(".bar")];
    const set = (isCovered: boolean) => {
      for (const each of covered) each?.toggleAttribute("inert", isCovered);
    };
    const follow = () => set(media.matches);
    follow();
    media.addEventListener("change", follow);
    return () => {
      media.removeEventListener("change", follow);
      set(false);
    };
  }, [panel]);
}

/** Facts of a panel. */
export function Facts({ facts }: { readonly facts: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  const known = facts.filter(([, value]) => value !== undefined && value !== "");
  return (
    <dl class="facts">
      {known.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
