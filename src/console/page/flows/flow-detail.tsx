/** One flow: which rule decided, what each node on the way said, the reasoning of the judge, and a policy that would allow it. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import {
  byteWords,
  decidingOf,
  durationWords,
  endWords,
  portWords,
  protocolName,
  stagedWords,
  withPort,
} from "../../../admin/flows/flow-words.ts";
import { counted } from "../../../counted.ts";
import type { FlowExplanation } from "../../../flows/flow-answer.ts";
import { parametersOf } from "../../../flows/flow-query.ts";
import { type FlowCount, type FlowRecord, UNKNOWN_RULES } from "../../../flows/flow-record.ts";
import { identity } from "../../../identity.ts";
import { originWords, readRuleComment } from "../../../policy/table/rule-comment.ts";
import { askLines, Refusal } from "../ask.ts";
import { now } from "../clock.ts";
import { Command } from "../parts/command.tsx";
import { Loading, Refused } from "../parts/notices.tsx";
import { Facts, Panel } from "../parts/panel.tsx";
import { VerdictMark } from "../parts/state-mark.tsx";
import { exactTime, timeWords } from "../words.ts";
import { FlowDraft } from "./flow-draft.tsx";
import { isPartner, partnerQuery } from "./flow-partner.ts";
import { FlowPath } from "./flow-path.tsx";
import { revision, schemaOfAnswer, store } from "./follow-flows.ts";
import { Reasoning } from "./reasoning.tsx";

interface FlowDetailProps {
  readonly id: string;
  close(): void;
}

export function FlowDetail({ id, close }: FlowDetailProps) {
  const { explanation, refusal } = useExplanation(id);
  const drawn = revision.value;
  const flow = useMemo(() => store.get(id) ?? explanation?.flow, [id, drawn, explanation]);
  const partner = usePartner(flow);
  if (flow === undefined)
    return (
      <Panel label="Flow" about={id} head={<h2>Flow</h2>} close={close}>
        {refusal === undefined ? <Loading what="the flow" /> : <Refused refusal={refusal} what="the flow" />}
      </Panel>
    );
  const to = flow.backend ?? flow.destination;
  return (
    <Panel
      label="Flow"
      about={id}
      close={close}
      head={
        <>
          <VerdictMark verdict={flow.verdict} />
          <h2>
            {endWords(flow.source)} <span class="muted">to</span> {endWords(to)}{" "}
            <span class="mono">{portWords(flow)}</span>
          </h2>
        </>
      }
    >
      <p class={`deciding deciding-${flow.verdict}`}>{decidingWords(flow)}</p>
      <FlowPath flow={flow} partner={partner} />
      {flow.verdict === "denied" && <FlowDraft id={id} flow={flow} />}
      <Section title="Reasoning">
        {explanation !== undefined ? (
          <Reasoning explanation={explanation} />
        ) : refusal === undefined ? (
          <Loading what="the reasoning" />
        ) : (
          <Refused refusal={refusal} what="the reasoning" />
        )}
      </Section>
      <Section title="Facts">
        <FlowFacts flow={flow} />
      </Section>
      <Section title="The same in a terminal">
        <Command text={`${identity.adminTool} flows explain ${id}`} />
      </Section>
    </Panel>
  );
}

function Section({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <section class="detail">
      <h3>{title}</h3>
      {children}
    </section>
  );
}

/** `Denied by NetworkPolicy "shop/db", ingress rule 1 (spec.ingress[0])`. */
export function decidingWords(flow: FlowRecord): string {
  const decision = decidingOf(flow);
  const verdict = { allowed: "Allowed", denied: "Denied", unknown: "Not known" }[flow.verdict];
  if (decision === undefined) return `${verdict}: no rule of this node had to decide`;
  if (decision.rule !== undefined) return `${verdict} by ${originWords(readRuleComment(decision.rule))}`;
  if (decision.unknown !== undefined) return `${verdict} by an unknown rule: ${UNKNOWN_RULES[decision.unknown]}`;
  return `${verdict} by a rule that you may not see`;
}

function useExplanation(id: string) {
  const explanation = useSignal<FlowExplanation | undefined>(undefined);
  const refusal = useSignal<Refusal | undefined>(undefined);
  useEffect(() => {
    const end = new AbortController();
    const read = async () => {
      const problems: string[] = [];
      const parameters = new URLSearchParams({ id });
      for await (const answer of askLines(`/api/explanation?${parameters}`, schemaOfAnswer, { signal: end.signal })) {
        if ("explanation" in answer) explanation.value = answer.explanation;
        if ("problem" in answer) problems.push(answer.problem.message);
      }
      if (explanation.value === undefined)
        throw new Refusal(404, problems[0] ?? "No flow has this ID", "It may be older than the history");
    };
    read().catch((error: unknown) => {
      if (!end.signal.aborted) refusal.value = error instanceof Refusal ? error : new Refusal(0, String(error));
    });
    return () => end.abort();
  }, [id]);
  return { explanation: explanation.value, refusal: refusal.value };
}

/** The record of the other node: among what the page has, or asked for. */
function usePartner(flow: FlowRecord | undefined): FlowRecord | undefined {
  const found = useSignal<FlowRecord | undefined>(undefined);
  const id = flow?.id;
  useEffect(() => {
    if (flow === undefined) return undefined;
    const end = new AbortController();
    found.value = store.records.find((record) => isPartner(flow, record));
    const read = async () => {
      const path = `/api/flows?${parametersOf(partnerQuery(flow))}`;
      for await (const answer of askLines(path, schemaOfAnswer, { signal: end.signal }))
        if ("flow" in answer && isPartner(flow, answer.flow)) found.value = answer.flow;
    };
    // Without it, the other node is shown without what it said.
    if (found.value === undefined) read().catch(() => undefined);
    return () => end.abort();
  }, [id]);
  return found.value;
}

function FlowFacts({ flow }: { readonly flow: FlowRecord }) {
  const { protocol, start, end, state, suppressed, sent, received, seenAs, staged, relatedTo, node, id } = flow;
  const isDenied = state === "denied";
  const lasted = isDenied
    ? ""
    : `, ${state === "open" ? "open for" : "lasted"} ${durationWords(Math.max(0, end - start))}`;
  return (
    <Facts
      facts={[
        ["Protocol", protocolName(protocol)],
        ["Began", <span title={exactTime(start)}>{`${timeWords(start, now.peek())}${lasted}`}</span>],
        ["Sent", countWords(sent)],
        ["Received", isDenied ? "" : countWords(received)],
        ["Seen as", seenAs === undefined ? "" : withPort(seenAs.address, seenAs.port)],
        ["Suppressed", suppressed === undefined ? "" : `${counted(suppressed, "packet")} more in the same second`],
        ["Staged", staged === undefined ? "" : stagedWords(staged)],
        ["Belongs to", relatedTo ?? ""],
        ["Recorded by", `node ${node}`],
        ["ID", <span class="mono">{id}</span>],
      ]}
    />
  );
}

function countWords({ packets, bytes }: FlowCount): string {
  return `${counted(packets, "packet")}, ${byteWords(bytes)}`;
}
