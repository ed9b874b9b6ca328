/** The addresses of one block: what each of them is. */
import { useMemo } from "preact/hooks";
import { ADDRESS_USES, type Block } from "../../api/addresses.ts";
import { MapGrid } from "../parts/map-grid.tsx";
import { go, hashOf, withParameters } from "../route.ts";
import { numberWords } from "../words.ts";
import { addressesIn, isAddressUse, shortAddress, USE_NAMES, USE_SIGNS, USES } from "./pool-words.ts";

interface BlockMapProps {
  readonly block: Block;
  readonly opened: string | undefined;
}

export function BlockMap({ block, opened }: BlockMapProps) {
  const { cidr, node, free, use } = block;
  const addresses = useMemo(() => addressesIn(block), [block]);
  return (
    <section class="card map-card" aria-labelledby="block-title">
      <header class="section-head">
        <h2 id="block-title">{cidr}</h2>
        <span>
          {node === undefined ? (
            <span class="muted">no node has it</span>
          ) : (
            <>
              <span class="muted">of </span>
              <a href={hashOf({ view: "health", parameters: { node } })}>{node}</a>
            </>
          )}
        </span>
        <span class="muted">{numberWords(free)} free</span>
        <Legend use={use ?? ""} />
      </header>
      {use === undefined ? (
        <p class="none">It has too many addresses to show each. Find one with the field above.</p>
      ) : (
        <MapGrid
          name="addresses"
          label={`Addresses of block ${cidr}`}
          count={addresses.length}
          cellWidth={38}
          cellHeight={30}
          powerOfTwo={true}
          labelOf={(index) => `${addresses[index]}: ${ADDRESS_USES[letterAt(use, index)]}`}
          lookOf={(index) => lookOf(letterAt(use, index), addresses[index] ?? "")}
          opened={opened === undefined ? -1 : addresses.indexOf(opened)}
          open={(index) => go(withParameters({ address: addresses[index] }), "replace")}
        />
      )}
    </section>
  );
}

function letterAt(use: string, index: number) {
  const letter = use.charAt(index);
  return isAddressUse(letter) ? letter : ".";
}

function lookOf(letter: ReturnType<typeof letterAt>, address: string) {
  return {
    class: `tile-address use-${USE_NAMES[letter]}`,
    content: (
      <>
        <span class="tile-name">{shortAddress(address)}</span>
        <span class="tile-sign">{USE_SIGNS[letter]}</span>
      </>
    ),
  };
}

/** Of what there is in the block. */
function Legend({ use }: { readonly use: string }) {
  return (
    <ul class="use-counts legend">
      {USES.filter((letter) => use.includes(letter)).map((letter) => (
        <li key={letter}>
          <span class={`swatch tile-address use-${USE_NAMES[letter]}`} aria-hidden="true">
            {USE_SIGNS[letter]}
          </span>
          <span class="muted">{USE_NAMES[letter]}</span>
        </li>
      ))}
    </ul>
  );
}
