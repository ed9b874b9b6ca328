/** Parts of a flow as the table and the details show them. */
import { destinationWords, portWords, protocolName, withPort } from "../../../admin/flows/flow-words.ts";
import type { FlowEnd, FlowRecord } from "../../../flows/flow-record.ts";
import { Icon, type IconName } from "../parts/icons.tsx";

const KIND_ICONS: Readonly<Record<FlowEnd["kind"], IconName>> = {
  pod: "pod",
  container: "pod",
  host: "host",
  service: "service",
  "network set": "set",
  outside: "outside",
  hidden: "hidden",
};

/** The kind as a shape and, for readers of screens, a word; then the name, whose namespace is quieter. */
export function End({ end }: { readonly end: FlowEnd }) {
  const { kind, namespace, name, address } = end;
  return (
    <span class="end" title={withPort(address, end.port)}>
      <Icon name={KIND_ICONS[kind]} />
      <span class="unseen">{kind} </span>
      <span class="end-name">
        {name === undefined ? (
          <span class="mono">{address}</span>
        ) : (
          <>
            {namespace !== undefined && <span class="muted">{namespace}/</span>}
            {name}
          </>
        )}
      </span>
    </span>
  );
}

export function Destination({ record }: { readonly record: FlowRecord }) {
  const { destination, backend } = record;
  if (backend === undefined) return <End end={destination} />;
  return (
    <span class="ends" title={destinationWords(record)}>
      <End end={destination} />
      <Icon name="right" />
      <span class="unseen">leads to </span>
      <End end={backend} />
    </span>
  );
}

/** The port, and the protocol beside it if it is not the usual one. */
export function Port({ record }: { readonly record: FlowRecord }) {
  const words = portWords(record);
  const protocol = protocolName(record.protocol);
  const [port = words] = words.split(`/${protocol}`);
  return (
    <span class="mono">
      {port}
      {port !== words && <span class="muted">/{protocol}</span>}
    </span>
  );
}
