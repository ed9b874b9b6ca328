/** A command to type elsewhere, with a button that copies it. */
import { useSignal } from "@preact/signals";
import { Icon } from "./icons.tsx";

const SHOWN_MILLISECONDS = 2_000;

export function Command({ text }: { readonly text: string }) {
  return (
    <div class="command">
      <code>{text}</code>
      <CopyButton text={text} what="the command" />
    </div>
  );
}

export function CopyButton({ text, what }: { readonly text: string; readonly what: string }) {
  const said = useSignal("");
  const copy = async () => {
    said.value = await navigator.clipboard.writeText(text).then(
      () => "Copied",
      () => "Not copied: the browser does not allow it",
    );
    setTimeout(() => {
      said.value = "";
    }, SHOWN_MILLISECONDS);
  };
  return (
    <>
      <button type="button" class="quiet icon-button" aria-label={`Copy ${what}`} title={`Copy ${what}`} onClick={copy}>
        <Icon name={said.value === "Copied" ? "ok" : "copy"} />
      </button>
      <span class="unseen" role="status">
        {said.value}
      </span>
    </>
  );
}
