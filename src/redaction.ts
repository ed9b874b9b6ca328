/**
 * Removes secrets from text before it is printed or logged.
 *
 * Every log line and every message that quotes a value from outside (config,
 * environment, a server's response) goes through `redact()`. It recognizes
 * secrets by their form: user and password in a URL, bearer tokens, JSON web
 * tokens, PEM blocks (plain or base64), and values whose name says secret.
 * When in doubt it removes too much: a hidden word costs less than a leaked
 * key. Every pattern is linear in the length of the text.
 */
import { constants } from "node:os";

/** What takes the place of a secret. */
export const HIDDEN = "[redacted]";

/** Returns the text with everything that looks like a secret replaced by `[redacted]`. */
export function redact(text: string): string {
  const lowered = text.toLowerCase();
  let clean = text;
  for (const hide of RULES) {
    if (hide.signs.some((sign) => lowered.includes(sign))) clean = hide.in(clean);
  }
  return clean;
}

/** Returns what may be shown of a field's value: nothing if its name says that it is a secret. */
export function redactField(name: string, value: string): string {
  return isSecretName(name) && value !== "" ? HIDDEN : redact(value);
}

/** `password`, `apiToken`, `client-key-data`: yes. `token_file`, `secretName`: no, they only refer to a secret. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name) && !PLACE_NAME.test(name);
}

const SECRET_WORDS =
  "password|passwd|passphrase|secret|token|credential|authorization|api[_-]?key|private[_-]?key|key[_-]?data|cert(?:ificate)?(?:[_-]?authority)?[_-]?data|key[_-]?pem|cert[_-]?pem";
const SECRET_NAME = new RegExp(SECRET_WORDS, "i");
const PLACE_NAME = /(?:files?|path|dir|directory|name|namespace|ref|kind|count|controllers?)$/i;

const PEM_BLOCK = /-----BEGIN ([A-Z0-9 ]{1,60})-----(?:(?!-----BEGIN)[\s\S])*?(?:-----END [A-Z0-9 ]{1,60}-----|$)/g;

/** Base64 of `-----BEGIN`, as in kubeconfigs. */
const ENCODED_PEM = /LS0tLS1CRUdJ[A-Za-z0-9+/_=-]*/g;

const JSON_WEB_TOKEN = /\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?/g;

const AUTHORIZATION = /\b(Bearer|bearer|BEARER|Basic(?= +[A-Za-z0-9+/]{8}))\s+[^\s"',;]+/g;

const USER_IN_URL = /:\/\/[^\s/?#"'<>]{0,2048}@/g;

/** What follows the colon is not a port, so it is a password, and may contain `/`, `?` and `#`. */
const PASSWORD_WITH_SLASH =
  /:\/\/[^\s/?#:@"'<>]{0,512}:(?!\d{1,5}(?:[\s/?#,"']|$))(?:(?!,\s*[a-z]{1,16}:\/\/)[^\s"'<>]){0,1024}@/g;

/** `user:password@host` without a scheme. */
const USER_BEFORE_HOST = /(?<![\w.%+~/[-])[\w.%+~-]{1,256}:[^\s"'@/]{1,512}@(?=[\w[])/g;

/** `name=value`, `name: value`, `"name": "value"`. */
const NAMED_VALUE = new RegExp(
  `(?<![\\w-])([\\w-]{0,64}?(?:${SECRET_WORDS})[\\w-]{0,64})(\\\\?["']?)(\\s{0,4}[:=]\\s{0,4})(\\\\?"(?:[^"\\\\]|\\\\[^"])*\\\\?"|'[^']*'|[^\\s,;&}"']+)`,
  "gi",
);

type NamedMatch = readonly [
  whole: string,
  name: string,
  quote: string,
  separator: string,
  value: string,
  offset: number,
  text: string,
];

/** Messages have the form "action token: state": a plain word after a colon and a space is prose, not a value. */
function hideNamedValue(...match: NamedMatch): string {
  const [whole, name, quote, separator, value] = match;
  const isProse =
    quote === "" && /:\s/.test(separator) && !/passw|passphrase/i.test(name) && /^[A-Za-z-]+$/.test(value);
  if (isProse || isStateOfFile(match) || !isSecretName(name) || value.startsWith("[redacted")) return whole;
  const mark = /^\\?["']/.exec(value)?.[0] ?? "";
  return `${name}${quote}${separator}${mark}${HIDDEN}${mark}`;
}

/**
 * A file may be called `token`, and what follows its path is its state: the code of a system error, or prose after words of
 * our own (`Cannot read "/run/token": no such file`). A key may look like a path too, so anything else is a value, and so is
 * whatever follows a password.
 */
function isStateOfFile([whole, name, , separator, value, offset, text]: NamedMatch): boolean {
  const start = startOfPath(text, offset);
  if (!/:\s/.test(separator) || start === undefined) return false;
  if (/passw|passphrase/i.test(name) && name !== USERS_FILE) return false;
  if (ERROR_CODES.has(value.replace(/:$/, ""))) return true;
  const after = text.slice(offset + whole.length, offset + whole.length + 2);
  const before = text.slice(Math.max(0, start - LONGEST_ACTION), start);
  return OWN_ACTION.test(before) && /^[A-Za-z-]+$/.test(value) && /^ [A-Za-z]/.test(after);
}

/** The one file with such a name that every host has, and that holds no secret. */
const USERS_FILE = "passwd";
const ERROR_CODES: ReadonlySet<string> = new Set(Object.keys(constants.errno));
/** `Cannot open datastore "`, up to the path. */
const OWN_ACTION = /\bCannot [a-z]+(?: [a-z]+){0,4} ["']?$/;
const LONGEST_ACTION = 80;

/** The directories before a name: they begin with a slash, after a quote, a space or nothing. */
const DIRECTORIES = /^\.{0,2}\/(?:.*\/)?\.?$/;
const ENDS_PATH = /[\s"'(:@=]/;
/** As long as a path of Linux can be; a limit keeps the search linear. */
const LONGEST_PATH = 4096;

/** Where the path begins that ends with the name at `offset`; `undefined` if it is not a path. */
function startOfPath(text: string, offset: number): number | undefined {
  let start = offset;
  while (start > 0 && offset - start <= LONGEST_PATH && !ENDS_PATH.test(text[start - 1] ?? "")) start -= 1;
  return !/[:@=]/.test(text[start - 1] ?? "") && DIRECTORIES.test(text.slice(start, offset)) ? start : undefined;
}

interface Rule {
  /** A text that contains none of these (in lower case) cannot match: a cheap check before the pattern. */
  readonly signs: readonly string[];
  in(text: string): string;
}

const RULES: readonly Rule[] = [
  { signs: ["-----begin"], in: (text) => text.replace(PEM_BLOCK, `${HIDDEN} $1`) },
  {
    signs: ["@"],
    in: (text) =>
      text
        .replace(PASSWORD_WITH_SLASH, `://${HIDDEN}@`)
        .replace(USER_IN_URL, `://${HIDDEN}@`)
        .replace(USER_BEFORE_HOST, `${HIDDEN}@`),
  },
  { signs: ["bearer", "basic"], in: (text) => text.replace(AUTHORIZATION, `$1 ${HIDDEN}`) },
  { signs: ["eyj"], in: (text) => text.replace(JSON_WEB_TOKEN, HIDDEN) },
  { signs: ["ls0tls1crudj"], in: (text) => text.replace(ENCODED_PEM, HIDDEN) },
  {
    signs: ["passw", "passphrase", "secret", "token", "credential", "authorization", "key", "data", "pem"],
    in: (text) => text.replace(NAMED_VALUE, hideNamedValue),
  },
];
