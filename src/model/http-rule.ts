/** The `http` of a rule: which HTTP requests match. A sidecar beside the workload compares them. */
import * as v from "valibot";
import { normalPathOfRule } from "../http/normal-path.ts";

/** A token of HTTP; `*` is one too, and matches every method. */
export const METHOD_PATTERN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
export const NOT_A_METHOD = 'is not an HTTP method; use for example "GET", or "*" for every method';
/** Methods are compared exactly: nobody means "get". */
export const WELL_KNOWN_METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

export const HTTP_PATH_MESSAGES = {
  slash: 'does not begin with "/"',
  query: "has a query or a fragment, which rules do not match",
  normal: "is not in normal form",
  one: "must have exactly one of exact and prefix; use a member of the list for each",
} as const;

export const methodField = v.pipe(
  v.string(),
  v.check((text) => METHOD_PATTERN.test(text), NOT_A_METHOD),
);

export const httpPathField = v.pipe(
  v.string(),
  v.check(
    (text) => pathProblem(text) === undefined,
    (issue) => pathProblem(issue.input) ?? "",
  ),
);

const pathSchema = v.pipe(
  v.looseObject({ exact: v.exactOptional(httpPathField), prefix: v.exactOptional(httpPathField) }),
  v.check(({ exact, prefix }) => (exact === undefined) !== (prefix === undefined), HTTP_PATH_MESSAGES.one),
);

export const httpSchema = v.looseObject({
  methods: v.exactOptional(v.array(methodField)),
  paths: v.exactOptional(v.array(pathSchema)),
});

/** Not part of the schema: a stored policy with such a method is readable, and the method never matches. */
export function methodCaseProblem(text: string): string | undefined {
  const upper = text.toUpperCase();
  return text !== upper && WELL_KNOWN_METHODS.includes(upper) ? methodCaseMessage(upper) : undefined;
}

/** The rule of the CRDs has the same one, with an expression for the value. */
export function methodCaseMessage(upper: string): string {
  return `is not a method: methods are case sensitive; use "${upper}"`;
}

function pathProblem(text: string): string | undefined {
  if (!text.startsWith("/")) return `${HTTP_PATH_MESSAGES.slash}; use "/${text}"`;
  const [path] = text.split(/[?#]/, 1);
  if (path !== text) return `${HTTP_PATH_MESSAGES.query}; use "${path}"`;
  const normal = normalPathOfRule(text);
  if (!normal.ok) return `${HTTP_PATH_MESSAGES.normal}: it ${normal.reason}; use the path that the server sees`;
  return normal.path === text ? undefined : `${HTTP_PATH_MESSAGES.normal}; use "${normal.path}"`;
}
