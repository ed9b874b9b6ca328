/** The map of a pool: each block is a cell, filled as far as its addresses are used; below it the addresses of one block. */
import { useMemo } from "preact/hooks";
import { counted } from "../../../counted.ts";
import { type Block, type Pool, type PoolMapAnswer, poolMapAnswerSchema } from "../../api/addresses.ts";
import { askLines, type Request } from "../ask.ts";
import { now } from "../clock.ts";
import { MapGrid } from "../parts/map-grid.tsx";
import { Empty, Loading, Refused } from "../parts/notices.tsx";
import { go, withParameters } from "../route.ts";
import { numberWords, shareWords } from "../words.ts";
import { BlockMap } from "./block-map.tsx";
import { UseBar, UseCounts } from "./pool-list.tsx";
import { blockWords, fillOf, forecastWords, usedShare } from "./pool-words.ts";
import { useAsked } from "./use-asked.ts";

interface PoolMapProps {
  readonly name: string;
  /** In CIDR notation, as in the address of the view. */
  readonly block: string | undefined;
  readonly opened: string | undefined;
}

interface MappedPool {
  readonly pool: Pool;
  readonly blocks: readonly Block[];
}

export function PoolMap({ name, block: cidr, opened }: PoolMapProps) {
  const asked = useAsked(`pool ${name}`, (request) => askMap(name, request));
  if (asked.kind === "asking") return <Loading what={`the map of pool ${name}`} />;
  if (asked.kind === "refused") return <Refused refusal={asked.refusal} what={`pool ${name}`} />;
  const { pool, blocks } = asked.value;
  const block = blocks.find((each) => each.cidr === cidr);
  return (
    <>
      {asked.refusal !== undefined && <Refused refusal={asked.refusal} what="a newer map" />}
      <section class="card map-card" aria-labelledby="blocks-title">
        <header class="section-head">
          <h2 id="blocks-title">
            {pool.cidr}, {counted(blocks.length, "block")} of /{pool.blockSize}
          </h2>
          <span class="muted">
            {shareWords(usedShare(pool))} of {numberWords(pool.counts.size)} addresses used
          </span>
          <span class="muted">{forecastWords(pool, now.value)}</span>
        </header>
        <UseBar pool={pool} />
        <UseCounts pool={pool} />
        {blocks.length > 0 && (
          <p class="muted">
            Each cell is a block, filled as far as it is used. An exclamation mark: leaked addresses; a broken edge: no
            node has it.
          </p>
        )}
        {blocks.length === 0 ? <NoBlocks name={name} /> : <Blocks name={name} blocks={blocks} opened={block} />}
      </section>
      {cidr !== undefined &&
        (block === undefined ? (
          <p class="notice notice-plain">
            No block {cidr} exists in this pool: no node has taken it yet, or it was given back.
          </p>
        ) : (
          <BlockMap key={block.cidr} block={block} opened={opened} />
        ))}
    </>
  );
}

async function askMap(name: string, request: Request): Promise<MappedPool> {
  let pool: Pool | undefined;
  const blocks: Block[] = [];
  const path = `/api/pools/${encodeURIComponent(name)}`;
  for await (const answer of askLines<PoolMapAnswer>(path, () => poolMapAnswerSchema, request)) {
    if ("pool" in answer) pool = answer.pool;
    else blocks.push(answer.block);
  }
  if (pool === undefined) throw new Error(`The console did not say what pool ${name} is`);
  return { pool, blocks };
}

function NoBlocks({ name }: { readonly name: string }) {
  return (
    <Empty icon="addresses" title="No block of this pool is in use">
      <p>A node takes a block when the first pod on it gets an address of pool {name}.</p>
    </Empty>
  );
}

interface BlocksProps {
  readonly name: string;
  readonly blocks: readonly Block[];
  readonly opened: Block | undefined;
}

function Blocks({ name, blocks, opened }: BlocksProps) {
  const looks = useMemo(() => blocks.map(lookOf), [blocks]);
  const wordsOf = (index: number) => {
    const block = blocks[index];
    return block === undefined ? "" : blockWords(block);
  };
  return (
    <MapGrid
      name="blocks"
      label={`Blocks of pool ${name}`}
      count={blocks.length}
      cellWidth={24}
      cellHeight={24}
      labelOf={wordsOf}
      lookOf={(index) => looks[index] ?? { class: "" }}
      opened={opened === undefined ? -1 : blocks.indexOf(opened)}
      open={(index) => {
        const block = blocks[index];
        if (block !== undefined) go({ ...withParameters({ address: undefined }), path: [name, block.cidr] });
      }}
    />
  );
}

/** Leaks have a sign; a block without a node has a broken edge. */
function lookOf(block: Block) {
  const { size, used, leaked } = fillOf(block);
  return {
    class: [
      "tile-block",
      ...(block.node === undefined ? ["is-orphan"] : []),
      ...(leaked > 0 ? ["has-leaks"] : []),
    ].join(" "),
    fill: size === 0 ? 0 : used / size,
    ...(leaked > 0 ? { content: <span class="tile-sign">!</span> } : {}),
  };
}
