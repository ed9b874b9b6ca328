/** The nodes, those in trouble first, and the details of one. */
import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { counted } from "../../../counted.ts";
import type { HealthNode, State } from "../../api/health.ts";
import { now } from "../clock.ts";
import { Icon } from "../parts/icons.tsx";
import { useKeys } from "../parts/keys.ts";
import { Facts, Panel } from "../parts/panel.tsx";
import { StateMark } from "../parts/state-mark.tsx";
import { VirtualRows } from "../parts/virtual-rows.tsx";
import { go, hashOf, route, withParameters } from "../route.ts";
import { agoWords, exactTime, numberWords } from "../words.ts";
import { isNodeFound, nodeCounts, sortedNodes } from "./health-words.ts";
import { Problem } from "./problem.tsx";

const COLUMNS = ["Node", "State", "Agent", "Version", "Tunnel", "BGP", "Address", "Known"];

export function Nodes({ nodes }: { readonly nodes: readonly HealthNode[] }) {
  const text = useSignal("");
  const state = useSignal<State | undefined>(undefined);
  const search = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => search.current?.focus() });
  const sorted = useMemo(() => sortedNodes(nodes), [nodes]);
  const rows = sorted.filter(
    (node) => (state.value === undefined || node.state === state.value) && isNodeFound(node, text.value),
  );
  const name = route.value.parameters["node"];
  if (nodes.length === 0) return null;
  return (
    <section class="nodes" aria-labelledby="nodes-title">
      <header class="section-head">
        <h2 id="nodes-title">{counted(nodes.length, "node")}</h2>
        <NodeStates nodes={nodes} chosen={state.value} choose={(each) => (state.value = each)} />
        <label class="search">
          <Icon name="search" />
          <span class="unseen">Search nodes</span>
          <input
            ref={search}
            type="search"
            placeholder="Name, address or version"
            value={text.value}
            onInput={({ currentTarget }) => (text.value = currentTarget.value)}
          />
        </label>
      </header>
      <div class="card">
        {rows.length === 0 ? (
          <p class="none">No node matches. Change the search, or show all states.</p>
        ) : (
          <VirtualRows
            name="nodes"
            label="Nodes"
            columns={COLUMNS}
            rows={rows}
            keyOf={nameOf}
            classOf={(node) => `is-${node.state}`}
            cells={cellsOf}
            heights={[32, 54]}
            opened={name}
            open={(node) => go(withParameters({ node: node.name }), "replace")}
          />
        )}
      </div>
    </section>
  );
}

function nameOf({ name }: HealthNode): string {
  return name;
}

function cellsOf({ name, state, agent, version, tunnel, bgp, addresses, knownAt }: HealthNode) {
  return [
    name,
    <StateMark key="state" state={state} />,
    agent,
    version,
    tunnel,
    bgp,
    addresses[0] ?? "",
    agoWords(now.value - knownAt),
  ];
}

interface StatesProps {
  readonly nodes: readonly HealthNode[];
  readonly chosen: State | undefined;
  choose(state: State | undefined): void;
}

/** A bar of the shares, and the same as buttons that filter. */
function NodeStates({ nodes, chosen, choose }: StatesProps) {
  const counts = nodeCounts(nodes);
  return (
    <div class="node-states">
      <span class="share-bar" aria-hidden="true">
        {counts.map(([state, count]) => (
          <span key={state} class={`share share-${state}`} style={{ flexGrow: String(count) }} />
        ))}
      </span>
      <div class="segments" role="group" aria-label="State of the nodes">
        <button type="button" aria-pressed={chosen === undefined} onClick={() => choose(undefined)}>
          All
        </button>
        {counts.map(([state, count]) => (
          <button
            type="button"
            key={state}
            aria-pressed={chosen === state}
            onClick={() => choose(chosen === state ? undefined : state)}
          >
            <StateMark state={state} words={`${numberWords(count)} ${state}`} />
          </button>
        ))}
      </div>
    </div>
  );
}

/** Of the node that the address names. */
export function NodePanel({ nodes }: { readonly nodes: readonly HealthNode[] }) {
  const name = route.value.parameters["node"];
  if (name === undefined) return null;
  const node = nodes.find((each) => each.name === name);
  const close = () => go(withParameters({ node: undefined }), "replace");
  if (node === undefined)
    return (
      <Panel label={`Node ${name}`} about={name} head={<h2>{name}</h2>} close={close}>
        <p>No node has this name, or you may not list it.</p>
      </Panel>
    );
  const { state, agent, version, tunnel, bgp, addresses, knownAt, problems } = node;
  return (
    <Panel
      label={`Node ${name}`}
      about={name}
      head={
        <>
          <StateMark state={state} />
          <h2>{name}</h2>
        </>
      }
      close={close}
    >
      {problems.length > 0 && (
        <ul class="problems">
          {problems.map((problem) => (
            <Problem key={problem.message} problem={problem} isOfPanel={true} />
          ))}
        </ul>
      )}
      <Facts
        facts={[
          ["Agent", orUnknown(agent)],
          ["Version", orUnknown(version)],
          ["Addresses", addresses.length === 0 ? "not known" : addresses.join(", ")],
          ["Tunnel", orUnknown(tunnel)],
          ["BGP", orUnknown(bgp)],
          ["Known", <span title={exactTime(knownAt)}>{agoWords(now.value - knownAt)}</span>],
        ]}
      />
      <p>
        <a href={hashOf({ view: "flows", parameters: { node: name } })}>Flows that this node has seen</a>
      </p>
    </Panel>
  );
}

function orUnknown(text: string): string {
  return text === "" ? "not known" : text;
}
