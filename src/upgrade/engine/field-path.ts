/**
 * The value at a path as server-side apply writes it in conflicts: `.spec.template.spec.containers[name="node"].image`,
 * `.metadata.annotations.vendor.org/x`, `.metadata.finalizers[="a"]`, `.spec.args[0]`. Pure.
 */
import { isObject } from "../../model/shape.ts";

/** `undefined` if there is no such field, or the path cannot be read. */
export function valueAt(object: unknown, path: string): unknown {
  if (path === "" || object === undefined) return object;
  if (path.startsWith("[")) return valueInList(object, path);
  return path.startsWith(".") && isObject(object) ? valueInObject(object, path.slice(1)) : undefined;
}

/** Names may contain dots: the longest that exists is meant. */
function valueInObject(object: Readonly<Record<string, unknown>>, path: string): unknown {
  const names = Object.keys(object).filter(
    (name) => path.startsWith(name) && /^(?:$|[.[])/.test(path.slice(name.length)),
  );
  const longest = names.sort((one, other) => other.length - one.length)[0];
  return longest === undefined ? undefined : valueAt(object[longest], path.slice(longest.length));
}

function valueInList(list: unknown, path: string): unknown {
  const end = closingBracket(path);
  if (!Array.isArray(list) || end === undefined) return undefined;
  const [inside, rest] = [path.slice(1, end), path.slice(end + 1)];
  if (/^\d+$/.test(inside)) return valueAt(list[Number(inside)], rest);
  if (inside.startsWith("=")) return list.find((member) => JSON.stringify(member) === inside.slice(1));
  const keys = keysIn(inside);
  const isMeant = (member: unknown) =>
    isObject(member) && keys.every(([name, value]) => JSON.stringify(member[name]) === value);
  return keys.length === 0 ? undefined : valueAt(list.find(isMeant), rest);
}

/** `name="a",port=80` */
function keysIn(text: string): readonly (readonly [name: string, value: string])[] {
  return [...text.matchAll(/([\w.-]+)=("(?:[^"\\]|\\.)*"|[^,]*)(?:,|$)/g)].map(([, name = "", value = ""]) => [
    name,
    value,
  ]);
}

function closingBracket(path: string): number | undefined {
  const length = /^\[(?:"(?:[^"\\]|\\.)*"|[^\]"])*\]/.exec(path)?.[0].length;
  return length === undefined ? undefined : length - 1;
}
