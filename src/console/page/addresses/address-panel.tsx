/** One address: what it is, who has it since when, and what to do about it. */
import { ADDRESS_USES, type AddressDetail, addressSchema } from "../../api/addresses.ts";
import { ask } from "../ask.ts";
import { now } from "../clock.ts";
import { Command } from "../parts/command.tsx";
import { Loading, Refused } from "../parts/notices.tsx";
import { Facts, Panel } from "../parts/panel.tsx";
import { hashOf } from "../route.ts";
import { ageWords, exactTime } from "../words.ts";
import { USE_NAMES, USE_SIGNS } from "./pool-words.ts";
import { useAsked } from "./use-asked.ts";

interface AddressPanelProps {
  readonly address: string;
  close(): void;
}

export function AddressPanel({ address, close }: AddressPanelProps) {
  const asked = useAsked(`address ${address}`, (request) =>
    ask(`/api/addresses/${encodeURIComponent(address)}`, addressSchema, request),
  );
  return (
    <Panel label={`Address ${address}`} about={address} head={<h2 class="mono">{address}</h2>} close={close}>
      {asked.kind === "asking" && <Loading what="the address" />}
      {asked.kind === "refused" && <Refused refusal={asked.refusal} what="this address" />}
      {asked.kind === "known" && <Detail detail={asked.value} />}
    </Panel>
  );
}

export function Detail({ detail }: { readonly detail: AddressDetail }) {
  const { address, use, pool, block, node, owner, since, handle, reason, command } = detail;
  return (
    <>
      <p class={`address-use ${use === "l" ? "deciding deciding-denied" : "deciding"}`}>
        <span class={`swatch tile-address use-${USE_NAMES[use]}`} aria-hidden="true">
          {USE_SIGNS[use]}
        </span>
        {ADDRESS_USES[use]}
        {owner !== undefined && `: ${owner}`}
      </p>
      {reason !== undefined && <p>{reason}</p>}
      {command !== undefined && <Command text={command} />}
      <Facts
        facts={[
          ["Since", since === undefined ? "" : <span title={exactTime(since)}>{ageWords(now.value - since)}</span>],
          ["Node", node === undefined ? "" : <a href={hashOf({ view: "health", parameters: { node } })}>{node}</a>],
          [
            "Block",
            block === undefined || pool === undefined ? (
              (block ?? "")
            ) : (
              <a href={hashOf({ view: "addresses", path: [pool, block], parameters: { address } })}>{block}</a>
            ),
          ],
          ["Pool", pool === undefined ? "" : <a href={hashOf({ view: "addresses", path: [pool] })}>{pool}</a>],
          ["Handle", handle === undefined ? "" : <span class="mono">{handle}</span>],
        ]}
      />
      <p class="links">
        <a href={hashOf({ view: "flows", parameters: { from: address } })}>Flows from it</a>
        <a href={hashOf({ view: "flows", parameters: { to: address } })}>Flows to it</a>
      </p>
    </>
  );
}
