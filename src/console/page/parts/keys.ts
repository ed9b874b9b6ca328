/** Keys without a modifier that do something on the whole page, unless somebody types or has switched them off. */
import { useEffect } from "preact/hooks";
import { hasKeys } from "../appearance.ts";

export type KeyTable = Readonly<Record<string, () => void>>;

export function useKeys(keys: KeyTable): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (!hasKeys.value || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (isTyping(event.target) || document.querySelector("dialog[open]") !== null) return;
      const act = Object.hasOwn(keys, event.key) ? keys[event.key] : undefined;
      if (act === undefined) return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  });
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");
}
