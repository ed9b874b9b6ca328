/** The way of a packet: who sends it, what each node decides, who gets it. */
import { reasonWords, withPort } from "../../../admin/flows/flow-words.ts";
import type { FlowDecision, FlowEnd, FlowRecord } from "../../../flows/flow-record.ts";
import { Icon } from "../parts/icons.tsx";
import { hashOf } from "../route.ts";
import { End } from "./flow-cells.tsx";
import { type NodeOfFlow, nodesOf } from "./flow-partner.ts";

interface FlowPathProps {
  readonly flow: FlowRecord;
  /** The record of the other node. */
  readonly partner: FlowRecord | undefined;
}

export function FlowPath({ flow, partner }: FlowPathProps) {
  const { source, destination, backend } = flow;
  const nodes = nodesOf(flow, partner);
  return (
    <ol class="path" aria-label="The way of the packet">
      <PathEnd end={source} place="from" />
      {backend !== undefined && <PathEnd end={destination} place="via" />}
      {nodes.map((each) => (
        <PathNode key={each.node} node={each} />
      ))}
      <PathEnd end={backend ?? destination} place="to" />
    </ol>
  );
}

function PathEnd({ end, place }: { readonly end: FlowEnd; readonly place: "from" | "via" | "to" }) {
  const labels = Object.entries(end.labels ?? {});
  return (
    <li class={`path-end path-${place}`}>
      <span class="path-role muted">{place}</span>
      <div>
        <End end={end} />
        <span class="mono muted">{withPort(end.address, end.port)}</span>
        {labels.length > 0 && (
          <ul class="labels" aria-label="Labels">
            {labels.map(([key, value]) => (
              <li key={key}>
                <a href={hashOf({ view: "flows", parameters: { label: `${key}=${value}` } })}>
                  {key}={value}
                </a>
              </li>
            ))}
          </ul>
        )}
      </div>
    </li>
  );
}

function PathNode({ node: { node, record } }: { readonly node: NodeOfFlow }) {
  return (
    <li class="path-node">
      <span class="path-role muted">node</span>
      <div>
        <a href={hashOf({ view: "health", parameters: { node: node ?? "" } })}>{node}</a>
        {record === undefined ? (
          <p class="muted">has no record of it: the packet did not get there, or had not to be judged there</p>
        ) : (
          <Decisions decisions={record.decisions} />
        )}
      </div>
    </li>
  );
}

function Decisions({ decisions }: { readonly decisions: readonly FlowDecision[] }) {
  if (decisions.length === 0) return <p class="muted">no rule of this node had to decide</p>;
  return (
    <ul class="decisions">
      {decisions.map((decision) => (
        <li key={decision.point}>
          <span class={`mark mark-${MARKS[decision.verdict]}`}>
            <Icon name={MARKS[decision.verdict]} />
            {decision.point}: {decision.verdict}
          </span>
          <span class="muted">{reasonWords(decision)}</span>
        </li>
      ))}
    </ul>
  );
}

const MARKS = { allow: "allowed", deny: "denied", unknown: "unknown" } as const;
