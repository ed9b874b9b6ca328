/**
 * Questions about flows as a path with parameters, the same on the socket of a node, over the link of a node and in the API of the
 * cluster. Pure.
 */

import { quoted } from "../quote.ts";
import type { FlowQuestion } from "./flow-answer.ts";
import { FlowQueryError, parametersOf, readFlowQuery } from "./flow-query.ts";
import { readSight, sightText } from "./visible-flows.ts";

/** The paths, which are the names of the resources of the API too. */
export const FLOW_PATHS = ["flows", "rollups", "explanation"] as const;
export type FlowPath = (typeof FLOW_PATHS)[number];

const FOLLOW = "follow";
/** As the API server calls it: it ends no request with it after a minute. */
const WATCH = "watch";
/** What the reader may see, for whom the controllers ask a node. No parameter of the API, which finds it out itself. */
const SIGHT = "sight";

/** Throws `FlowQueryError`. */
export function readFlowRequest(path: FlowPath, parameters: URLSearchParams): FlowQuestion {
  const others = new URLSearchParams(parameters);
  switch (path) {
    case "flows": {
      const follows = [FOLLOW, WATCH].map((name) => switchIn(parameters, name));
      for (const name of [FOLLOW, WATCH]) others.delete(name);
      return { kind: "flows", query: readFlowQuery(others), follow: follows.includes(true) };
    }
    case "rollups":
      return { kind: "rollups", query: readFlowQuery(others) };
    case "explanation": {
      const { id, ...query } = readFlowQuery(others);
      const [further] = Object.keys(query);
      if (further !== undefined) throw new FlowQueryError(further, "an explanation is of one flow; give its id alone");
      if (id === undefined || id === "") throw new FlowQueryError("id", "it is missing; give the ID of a flow");
      return { kind: "explanation", id };
    }
  }
}

const GIVEN_TWICE = "it is given twice; give it once";

function switchIn(parameters: URLSearchParams, name: string): boolean {
  const [value = "false", second] = parameters.getAll(name);
  if (second !== undefined) throw new FlowQueryError(name, GIVEN_TWICE);
  if (["true", "1"].includes(value)) return true;
  if (["false", "0"].includes(value)) return false;
  throw new FlowQueryError(name, `it is ${JSON.stringify(value).slice(0, 40)}; use true or false`);
}

/** `/flows?since=1&follow=true` */
export function targetOf(question: FlowQuestion): string {
  if (question.kind === "explanation") return withParameters(question.kind, parametersOf({ id: question.id }));
  const parameters = parametersOf(question.query);
  if (question.sight !== undefined) parameters.set(SIGHT, sightText(question.sight));
  if (question.kind === "flows" && question.follow) parameters.set(FOLLOW, "true");
  return withParameters(question.kind, parameters);
}

function withParameters(path: FlowPath, parameters: URLSearchParams): string {
  return `/${path}${parameters.size === 0 ? "" : `?${parameters}`}`;
}

/** The question of a target; `undefined` for another path. Throws `FlowQueryError`. */
export function readTarget(target: string): FlowQuestion | undefined {
  const { pathname, searchParams } = new URL(target, "http://localhost");
  const path = FLOW_PATHS.find((each) => pathname === `/${each}`);
  if (path === undefined) return undefined;
  const [text, second] = searchParams.getAll(SIGHT);
  if (text === undefined) return readFlowRequest(path, searchParams);
  if (second !== undefined) throw new FlowQueryError(SIGHT, GIVEN_TWICE);
  searchParams.delete(SIGHT);
  const sight = readSight(text);
  if (sight === undefined)
    throw new FlowQueryError(SIGHT, `${quoted(text)} has other words than "nodes", "pods" and "pods/NAMESPACE"`);
  const question = readFlowRequest(path, searchParams);
  return question.kind === "explanation" ? question : { ...question, sight };
}
