/** The pools: how full each is, of what, and until when it lasts. */
import { identity } from "../../../identity.ts";
import { type Pool, type Pools, poolsSchema } from "../../api/addresses.ts";
import { ask } from "../ask.ts";
import { now } from "../clock.ts";
import { Command } from "../parts/command.tsx";
import { Icon } from "../parts/icons.tsx";
import { Empty, Hidden, Loading, Refused } from "../parts/notices.tsx";
import { hashOf } from "../route.ts";
import { numberWords, shareWords, sizeWords } from "../words.ts";
import { Forecast } from "./forecast.tsx";
import { forecastWords, isFullSoon, sharesOf, USE_NAMES, usedShare } from "./pool-words.ts";
import { useAsked } from "./use-asked.ts";

export function PoolList() {
  const asked = useAsked("pools", (request) => ask("/api/pools", poolsSchema, request));
  if (asked.kind === "asking") return <Loading what="the pools" />;
  if (asked.kind === "refused") return <Refused refusal={asked.refusal} what="the pools" />;
  return (
    <>
      {asked.refusal !== undefined && <Refused refusal={asked.refusal} what="newer numbers" />}
      <ShownPools pools={asked.value} />
    </>
  );
}

export function ShownPools({ pools: { pools, problems, hidden } }: { readonly pools: Pools }) {
  return (
    <>
      <Hidden what={hidden} />
      {problems.map(({ message, command }) => (
        <div class="notice notice-warning" key={message}>
          <Icon name="warning" />
          <div class="problem-words">
            <p>{message}</p>
            {command !== undefined && <Command text={command} />}
          </div>
        </div>
      ))}
      {pools.length === 0 && hidden.length === 0 && (
        <Empty icon="addresses" title="There is no pool yet" command={`${identity.adminTool} create -f pool.yaml`}>
          <p>Pods get their addresses from pools. Write an IPPool with a name and a network, such as 10.66.0.0/16:</p>
        </Empty>
      )}
      <ul class="pools">
        {pools.map((pool) => (
          <li key={pool.name}>
            <PoolCard pool={pool} />
          </li>
        ))}
      </ul>
    </>
  );
}

function PoolCard({ pool }: { readonly pool: Pool }) {
  const { name, cidr, disabled, nodeSelector, namespaceSelector, encapsulation, blockSize, counts } = pool;
  const words = forecastWords(pool, now.value);
  return (
    <article class="pool">
      <header>
        <h2>
          <a href={hashOf({ view: "addresses", path: [name] })}>{name}</a>
        </h2>
        <span class="mono">{cidr}</span>
        {disabled && <span class="tag">disabled</span>}
        <span class="pool-used">
          <strong>{shareWords(usedShare(pool))}</strong> used
        </span>
      </header>
      <UseBar pool={pool} />
      <UseCounts pool={pool} />
      <p class="muted pool-facts">
        {numberWords(counts.blocks)} blocks of /{blockSize} · {nodeSelector === "all()" ? "all nodes" : nodeSelector} ·{" "}
        {namespaceSelector !== undefined && <>namespaces {namespaceSelector} · </>}
        {encapsulation}
      </p>
      {words !== undefined && (
        <>
          <p class={isFullSoon(pool, now.value) ? "mark mark-warning wraps" : "muted"}>
            {isFullSoon(pool, now.value) && <Icon name="warning" />}
            {words}
          </p>
          <Forecast pool={pool} />
        </>
      )}
    </article>
  );
}

export function UseBar({ pool }: { readonly pool: Pool }) {
  return (
    <span class="use-bar" aria-hidden="true">
      {sharesOf(pool).map(({ use, share }) => (
        <span key={use} class={`use use-${USE_NAMES[use]}`} style={{ flexGrow: String(Math.max(share, 0.002)) }} />
      ))}
    </span>
  );
}

export function UseCounts({ pool }: { readonly pool: Pool }) {
  return (
    <ul class="use-counts">
      {sharesOf(pool).map(({ use, count }) => (
        <li key={use}>
          <span class={`swatch use-${USE_NAMES[use]}`} aria-hidden="true" />
          {use === "." ? sizeWords(freeOf(pool)) : numberWords(count)} <span class="muted">{USE_NAMES[use]}</span>
        </li>
      ))}
    </ul>
  );
}

/** Exact: a pool may be larger than a number. */
function freeOf({ counts: { size, used, reserved, resting } }: Pool): string {
  const free = BigInt(size) - BigInt(used + reserved + resting);
  return String(free < 0n ? 0n : free);
}
