/** What a reader sets for this browser: light or dark, keys. Nothing about the cluster is stored. */
import { effect, signal } from "@preact/signals";
import { store, stored } from "./browser-store.ts";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

export const theme = signal<Theme>(THEMES.find((each) => each === stored("theme")) ?? "system");
/** WCAG 2.1.4: keys without a modifier can be switched off. */
export const hasKeys = signal(stored("keys") !== "off");
/** Counts changes of the colours, for what is drawn on a canvas. */
export const colours = signal(0);

export function followAppearance(): void {
  effect(() => {
    const { value } = theme;
    if (value === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = value;
    store("theme", value === "system" ? undefined : value);
    colours.value = colours.peek() + 1;
  });
  effect(() => store("keys", hasKeys.value ? undefined : "off"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    colours.value += 1;
  });
}

/** As the style has it now. */
export function colourOf(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
