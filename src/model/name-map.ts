/**
 * A map from user-chosen names to values: labels, annotations.
 *
 * Valibot's record silently drops some names to protect programs that assign
 * them to an object one by one. This code does not: a member is defined, never
 * assigned, and `__proto__` is a name like any other.
 */
import * as v from "valibot";
import { isObject } from "./shape.ts";

type NameMap<Member extends v.GenericSchema> = Record<string, v.InferOutput<Member>>;

export function nameMap<Member extends v.GenericSchema>(
  member: Member,
): v.GenericSchema<NameMap<Member>, NameMap<Member>> {
  const record = v.record(v.string(), member);
  return {
    ...record,
    "~run"(dataset, config) {
      const input = dataset.value;
      if (!isObject(input)) return record["~run"](dataset, config) as v.FailureDataset<v.BaseIssue<unknown>>;
      const read = Object.entries(input).map(([name, value]) => ({ name, ...member["~run"]({ value }, config) }));
      const [first, ...others] = read.flatMap(({ name, issues = [] }) => issues.map((issue) => within(name, issue)));
      const value = Object.fromEntries(read.map((each) => [each.name, each.value])) as NameMap<Member>;
      return first ? { typed: false, value, issues: [first, ...others] } : { typed: true, value };
    },
  };
}

function within(name: string, issue: v.BaseIssue<unknown>): v.BaseIssue<unknown> {
  const place: v.IssuePathItem = { type: "object", origin: "value", input: {}, key: name, value: issue.input };
  return { ...issue, path: [place, ...(issue.path ?? [])] };
}
