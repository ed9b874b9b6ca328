/** Which time: the newest, a range that goes along with the clock, or two times. */
import { useSignal } from "@preact/signals";
import { route } from "../route.ts";
import { numberWords, timeWords } from "../words.ts";
import { NEWEST, RANGES } from "./flow-filter.ts";
import { setFilters } from "./set-filters.ts";

const BETWEEN = "between";
const LIVE = "live";

export function TimeFilter() {
  const { range, since, until } = route.value.parameters;
  const asksBetween = useSignal(false);
  const isBetween = since !== undefined || until !== undefined;
  const choose = (value: string) => {
    asksBetween.value = value === BETWEEN;
    if (value === LIVE) setFilters({ range: undefined, since: undefined, until: undefined });
    else if (value !== BETWEEN) setFilters({ range: value, since: undefined, until: undefined });
  };
  return (
    <>
      <label class="time-filter">
        <span class="unseen">Time</span>
        <select
          value={isBetween || asksBetween.value ? BETWEEN : (range ?? LIVE)}
          onChange={({ currentTarget }) => choose(currentTarget.value)}
        >
          <option value={LIVE}>Live, newest {numberWords(NEWEST)}</option>
          {RANGES.map(({ name, words }) => (
            <option key={name} value={name}>
              {words}
            </option>
          ))}
          <option value={BETWEEN}>{isBetween ? betweenWords(since, until) : "Between two times …"}</option>
        </select>
      </label>
      {(isBetween || asksBetween.value) && <Between since={since} until={until} />}
    </>
  );
}

function betweenWords(since: string | undefined, until: string | undefined): string {
  const words = (text: string | undefined) => (text === undefined ? "…" : timeWords(Number(text), Date.now()));
  return `${words(since)} – ${words(until)}`;
}

interface BetweenProps {
  readonly since: string | undefined;
  readonly until: string | undefined;
}

function Between({ since, until }: BetweenProps) {
  const set = (field: "since" | "until", text: string) => {
    const at = new Date(text).getTime();
    setFilters({ range: undefined, [field]: Number.isNaN(at) ? undefined : String(at) });
  };
  return (
    <span class="between">
      <input
        type="datetime-local"
        step="1"
        aria-label="From this time"
        value={localText(since)}
        onChange={({ currentTarget }) => set("since", currentTarget.value)}
      />
      –
      <input
        type="datetime-local"
        step="1"
        aria-label="Until this time"
        value={localText(until)}
        onChange={({ currentTarget }) => set("until", currentTarget.value)}
      />
    </span>
  );
}

/** As the field has it: `2026-01-31T14:05:06`, where the reader is. */
function localText(milliseconds: string | undefined): string {
  if (milliseconds === undefined) return "";
  const at = Number(milliseconds);
  const offset = new Date(at).getTimezoneOffset() * 60_000;
  return new Date(at - offset).toISOString().slice(0, 19);
}
