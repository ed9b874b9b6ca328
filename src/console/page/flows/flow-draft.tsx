/** A policy that allows a denied flow: shown first, with what the judge says about it; applied only when it was read. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { endTitle } from "../../../flows/flow-query.ts";
import type { FlowRecord } from "../../../flows/flow-record.ts";
import { type AppliedDraft, appliedDraftSchema, type PolicyDraft, policyDraftSchema } from "../../api/policy-draft.ts";
import { ask, Refusal } from "../ask.ts";
import { Command, CopyButton } from "../parts/command.tsx";
import { Icon } from "../parts/icons.tsx";
import { Loading, Refused } from "../parts/notices.tsx";
import { hashOf } from "../route.ts";
import { session } from "../session-state.ts";

type Progress =
  | { readonly kind: "offered" }
  | { readonly kind: "asked" }
  | { readonly kind: "shown"; readonly draft: PolicyDraft; readonly refusal?: Refusal }
  | { readonly kind: "applying"; readonly draft: PolicyDraft }
  | { readonly kind: "applied"; readonly outcome: AppliedDraft }
  | { readonly kind: "refused"; readonly refusal: Refusal };

export function FlowDraft({ id, flow }: { readonly id: string; readonly flow: FlowRecord }) {
  const progress = useSignal<Progress>({ kind: "offered" });
  const { value } = progress;
  const path = `/api/flows/${encodeURIComponent(id)}/draft`;
  // Another flow: its draft has not been asked for.
  useEffect(() => {
    progress.value = { kind: "offered" };
  }, [id]);
  const draw = async () => {
    progress.value = { kind: "asked" };
    progress.value = await ask(path, policyDraftSchema).then(
      (draft): Progress => ({ kind: "shown", draft }),
      (error: unknown): Progress => ({ kind: "refused", refusal: refusalOf(error) }),
    );
  };
  const apply = async (draft: PolicyDraft) => {
    progress.value = { kind: "applying", draft };
    progress.value = await ask(path, appliedDraftSchema, { body: draft }).then(
      (outcome): Progress => ({ kind: "applied", outcome }),
      (error: unknown): Progress => ({ kind: "shown", draft, refusal: refusalOf(error) }),
    );
  };
  switch (value.kind) {
    case "offered":
      return (
        <button type="button" class="plain draft-button" onClick={draw}>
          Draft a policy that allows it
        </button>
      );
    case "asked":
      return <Loading what="a draft" />;
    case "refused":
      return <Refused refusal={value.refusal} what="a draft" />;
    case "shown":
      return <Draft draft={value.draft} refusal={value.refusal} isBusy={false} apply={apply} />;
    case "applying":
      return <Draft draft={value.draft} refusal={undefined} isBusy={true} apply={apply} />;
    case "applied":
      return <Applied outcome={value.outcome} flow={flow} />;
  }
}

function refusalOf(error: unknown): Refusal {
  return error instanceof Refusal ? error : new Refusal(0, String(error));
}

interface DraftProps {
  readonly draft: PolicyDraft;
  /** Of the attempt to apply it. */
  readonly refusal: Refusal | undefined;
  readonly isBusy: boolean;
  apply(draft: PolicyDraft): Promise<void>;
}

const VERDICT_WORDS = {
  allowed: "With this policy the flow is allowed: the judge has tried it.",
  denied: "Even with this policy the flow is denied: another one denies it too.",
  depends: "Whether it allows the flow depends on the interface of a host that the packet passes.",
} as const;

export function Draft({ draft, refusal, isBusy, apply }: DraftProps) {
  const { yaml, notes, verdict, command } = draft;
  if (yaml === "") return <NothingDrafted draft={draft} />;
  return (
    <section class="detail draft" aria-label="Draft of a policy">
      <h3>A policy that allows it</h3>
      <p class={`mark mark-${verdict === "allowed" ? "ok" : "warning"} wraps`}>
        <Icon name={verdict === "allowed" ? "ok" : "warning"} />
        {VERDICT_WORDS[verdict]}
      </p>
      <div class="yaml">
        <pre tabIndex={0} role="group" aria-label="The policy as YAML">
          {yaml}
        </pre>
        <CopyButton text={yaml} what="the policy" />
      </div>
      <Notes notes={notes} />
      {refusal !== undefined && <Refused refusal={refusal} what="the applied policy" />}
      <ApplyButton draft={draft} isBusy={isBusy} apply={apply} />
      <Command text={command} />
    </section>
  );
}

const NOTHING_WORDS = {
  allowed: "Such a flow is allowed now: the judge has tried it.",
  denied: "No policy was found that allows it.",
  depends: "Whether such a flow is allowed now is not certain.",
} as const;

/** Its notes say why, for example that the policies of now allow the flow. */
function NothingDrafted({ draft: { verdict, notes } }: { readonly draft: PolicyDraft }) {
  return (
    <section class="detail draft" aria-label="Draft of a policy">
      <h3>No policy to write</h3>
      <p class={`mark mark-${verdict === "allowed" ? "ok" : "warning"} wraps`}>
        <Icon name={verdict === "allowed" ? "ok" : "warning"} />
        {NOTHING_WORDS[verdict]}
      </p>
      <Notes notes={notes} />
    </section>
  );
}

function Notes({ notes }: Pick<PolicyDraft, "notes">) {
  if (notes.length === 0) return null;
  return (
    <ul class="notes muted">
      {notes.map((note) => (
        <li key={note}>{note}</li>
      ))}
    </ul>
  );
}

function ApplyButton({ draft, isBusy, apply }: Pick<DraftProps, "draft" | "isBusy" | "apply">) {
  const isAsking = useSignal(false);
  const reader = session.value;
  if (reader?.writable !== true)
    return (
      <p class="muted">
        This console is read-only.{" "}
        {reader?.mode === "host"
          ? "Start it with --write, or use the command:"
          : "To write the policy, use the command:"}
      </p>
    );
  if (isBusy || !isAsking.value)
    return (
      <button type="button" class="primary" disabled={isBusy} onClick={() => (isAsking.value = true)}>
        {isBusy ? "Applying" : "Apply"}
      </button>
    );
  return (
    <p class="confirm" role="alert">
      <span>It is enforced at once, on all nodes.</span>
      <button type="button" class="primary" onClick={() => apply(draft)}>
        Apply it
      </button>
      <button type="button" class="plain" onClick={() => (isAsking.value = false)}>
        Cancel
      </button>
    </p>
  );
}

function Applied({ outcome: { applied }, flow }: { readonly outcome: AppliedDraft; readonly flow: FlowRecord }) {
  const to = flow.backend ?? flow.destination;
  const parameters = { from: endTitle(flow.source), to: endTitle(to) };
  return (
    <div class="notice notice-done" role="status">
      <Icon name="ok" />
      <div>
        {applied.map(({ title, outcome }) => (
          <p key={title}>
            <strong>{title}</strong> {outcome}
          </p>
        ))}
        <p class="muted">This record stays denied; connections that begin now are allowed.</p>
        <p>
          <a href={hashOf({ view: "flows", parameters })}>Show the flows between these two</a>
        </p>
      </div>
    </div>
  );
}
