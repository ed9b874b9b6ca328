/** Filters as words in one field, a verdict, a time. All of them are in the address. */
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { FlowRecord } from "../../../flows/flow-record.ts";
import { Icon } from "../parts/icons.tsx";
import { useKeys } from "../parts/keys.ts";
import { type Verdict, VerdictMark } from "../parts/state-mark.tsx";
import { route } from "../route.ts";
import { FIELD_HINTS, type Filter, filtersIn, suggestedFilters, TYPED_FIELDS } from "./flow-filter.ts";
import { setFilters } from "./set-filters.ts";
import { TimeFilter } from "./time-filter.tsx";

export function FilterBar({ records }: { readonly records: readonly FlowRecord[] }) {
  const { parameters } = route.value;
  const filters = filtersIn(parameters);
  return (
    <div class="filters" role="search" aria-label="Filter flows">
      <VerdictFilter />
      <div class="filter-field">
        {filters.map(({ field, value }) => (
          <button
            type="button"
            class="chip"
            key={field}
            aria-label={`Remove the filter ${field} ${value}`}
            title="Remove this filter"
            onClick={() => setFilters({ [field]: undefined })}
          >
            <span class="muted">{field}</span> {value}
            <Icon name="close" />
          </button>
        ))}
        <FilterInput records={records} isFirst={filters.length === 0} />
      </div>
      <TimeFilter />
    </div>
  );
}

const VERDICTS: readonly Verdict[] = ["denied", "allowed", "unknown"];

function VerdictFilter() {
  const chosen = route.value.parameters["verdict"];
  return (
    <div class="segments" role="group" aria-label="Verdict">
      <button type="button" aria-pressed={chosen === undefined} onClick={() => setFilters({ verdict: undefined })}>
        All
      </button>
      {VERDICTS.map((verdict) => (
        <button
          type="button"
          key={verdict}
          aria-pressed={chosen === verdict}
          onClick={() => setFilters({ verdict: chosen === verdict ? undefined : verdict })}
        >
          <VerdictMark verdict={verdict} />
        </button>
      ))}
    </div>
  );
}

interface FilterInputProps {
  readonly records: readonly FlowRecord[];
  readonly isFirst: boolean;
}

/** A combobox: what is typed could be a pod, an address, a port; the list offers each meaning. */
function FilterInput({ records, isFirst }: FilterInputProps) {
  const text = useSignal("");
  const isOpen = useSignal(false);
  const chosen = useSignal(0);
  const input = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => input.current?.focus() });
  const offered = isOpen.value ? suggestedFilters(text.value, records) : [];
  const apply = ({ field, value }: Filter) => {
    text.value = "";
    isOpen.value = false;
    setFilters({ [field]: value });
  };
  const begin = (field: string) => {
    text.value = `${field}=`;
    chosen.value = 0;
    input.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const filter = offered[chosen.value];
    if (event.key === "ArrowDown") chosen.value = Math.min(chosen.value + 1, offered.length - 1);
    else if (event.key === "ArrowUp") chosen.value = Math.max(chosen.value - 1, 0);
    else if (event.key === "Enter" && filter !== undefined) apply(filter);
    else if (event.key === "Escape" && isOpen.value) isOpen.value = false;
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const showsFields = isOpen.value && text.value === "";
  return (
    <div class="filter-input">
      <Icon name="search" />
      <input
        ref={input}
        type="text"
        role="combobox"
        aria-label="Filter: a field and a value, such as pod=shop/web"
        aria-expanded={offered.length > 0}
        aria-controls="filter-list"
        aria-autocomplete="list"
        {...(offered.length > 0 ? { "aria-activedescendant": `filter-${chosen.value}` } : {})}
        placeholder={isFirst ? "Pod, address, port, label, policy …" : "and …"}
        autocomplete="off"
        spellcheck={false}
        value={text.value}
        onFocus={() => (isOpen.value = true)}
        onClick={() => (isOpen.value = true)}
        onBlur={() => (isOpen.value = false)}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value;
          chosen.value = 0;
          isOpen.value = true;
        }}
        onKeyDown={onKeyDown}
      />
      <div class="offers" id="filter-list" role="listbox" aria-label="Filters" hidden={offered.length === 0}>
        {offered.map(({ field, value }, index) => (
          <div
            class="offer"
            key={`${field}=${value}`}
            id={`filter-${index}`}
            role="option"
            aria-selected={index === chosen.value}
            onMouseDown={(event) => {
              event.preventDefault();
              apply({ field, value });
            }}
          >
            <span class="muted">{field}</span> {value}
            <span class="muted offer-hint">{FIELD_HINTS[field]}</span>
          </div>
        ))}
      </div>
      {showsFields && <Fields begin={begin} />}
    </div>
  );
}

/** What one can filter by, while nothing is typed. For the pointer: with keys one types the name. */
function Fields({ begin }: { begin(field: string): void }) {
  return (
    <div class="offers" aria-hidden="true">
      {TYPED_FIELDS.map((field) => (
        <div
          key={field}
          class="offer"
          onMouseDown={(event) => {
            event.preventDefault();
            begin(field);
          }}
        >
          {field}
          <span class="muted offer-hint">{FIELD_HINTS[field]}</span>
        </div>
      ))}
    </div>
  );
}
