/** Addresses: pools, the map of one down to its blocks and single addresses, who has an address, and when a pool is full. */
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { addressSchema } from "../../api/addresses.ts";
import { ask, Refusal } from "../ask.ts";
import { Icon } from "../parts/icons.tsx";
import { useKeys } from "../parts/keys.ts";
import { go, hashOf, route, withParameters } from "../route.ts";
import { AddressPanel } from "./address-panel.tsx";
import { PoolList } from "./pool-list.tsx";
import { PoolMap } from "./pool-map.tsx";

export function AddressesView() {
  const { path, parameters } = route.value;
  const [pool, block] = path;
  const address = parameters["address"];
  return (
    <div class="beside">
      <div class="addresses scrolls">
        <header class="addresses-head">
          <Trail pool={pool} block={block} />
          <FindAddress />
        </header>
        {pool === undefined ? <PoolList /> : <PoolMap key={pool} name={pool} block={block} opened={address} />}
      </div>
      {address !== undefined && (
        <AddressPanel address={address} close={() => go(withParameters({ address: undefined }), "replace")} />
      )}
    </div>
  );
}

function Trail({ pool, block }: { readonly pool: string | undefined; readonly block: string | undefined }) {
  if (pool === undefined) return <h1>Addresses</h1>;
  return (
    <nav class="trail" aria-label="Where you are">
      <a href={hashOf({ view: "addresses" })}>Addresses</a>
      <Icon name="right" />
      {block === undefined ? (
        <h1>{pool}</h1>
      ) : (
        <>
          <a href={hashOf({ view: "addresses", path: [pool] })}>{pool}</a>
          <Icon name="right" />
          <h1>{block}</h1>
        </>
      )}
    </nav>
  );
}

/** Goes to the block of an address, and opens it. */
function FindAddress() {
  const field = useRef<HTMLInputElement>(null);
  const failure = useSignal("");
  useKeys({ "/": () => field.current?.focus() });
  const find = async (event: Event) => {
    event.preventDefault();
    const wanted = field.current?.value.trim() ?? "";
    if (wanted === "") return;
    failure.value = "";
    await ask(`/api/addresses/${encodeURIComponent(wanted)}`, addressSchema).then(
      ({ address, pool, block }) => {
        const path = [pool, block].filter((each) => each !== undefined);
        go({ view: "addresses", path, parameters: { address } });
      },
      (error: unknown) => {
        failure.value = error instanceof Refusal ? [error.message, error.remedy ?? ""].join(" ") : String(error);
      },
    );
  };
  return (
    <form class="find" onSubmit={find}>
      <label class="search">
        <Icon name="search" />
        <span class="unseen">Find an address</span>
        <input ref={field} type="search" placeholder="Find an address" spellcheck={false} autocomplete="off" />
      </label>
      <span class="find-failure" role="alert">
        {failure.value}
      </span>
    </form>
  );
}
