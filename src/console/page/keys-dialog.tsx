/** Which keys there are, and a switch for those without a modifier. */
import { useEffect, useRef } from "preact/hooks";
import { hasKeys } from "./appearance.ts";
import { Icon } from "./parts/icons.tsx";

const KEYS: readonly (readonly [keys: readonly string[], does: string])[] = [
  [["1", "2", "3"], "Health, Flows, Addresses"],
  [["/"], "Filter or search"],
  [["↑", "↓", "j", "k"], "Choose a row, address or block"],
  [["Enter"], "Open what is chosen"],
  [["Esc"], "Close the details"],
  [["p"], "Flows: pause, go on"],
  [["d"], "Flows: denied only, all"],
  [["?"], "This list"],
];

export function KeysDialog({ close }: { close(): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog class="dialog" ref={dialog} onClose={close} aria-labelledby="keys-title">
      <header class="panel-head">
        <h2 id="keys-title">Keys</h2>
        <button type="button" class="quiet icon-button" aria-label="Close" onClick={() => dialog.current?.close()}>
          <Icon name="close" />
        </button>
      </header>
      <dl class="keys">
        {KEYS.map(([keys, does]) => (
          <div key={does}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={hasKeys.value}
          onChange={({ currentTarget }) => {
            hasKeys.value = currentTarget.checked;
          }}
        />
        Keys of one character act on the whole page
      </label>
    </dialog>
  );
}
