/** Which image the inserted sidecar has. Pure. */

import { UsageError } from "../../admin/main/command.ts";
import { quoted } from "../../quote.ts";

const NAME = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const REGISTRY = /^(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9a-fA-F:]+\])(?::\d+)?$/;
const SUFFIX = /^(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+:[0-9a-fA-F]{2,})?$/;

/** Throws if the text of `--image` is not a reference of an image: it becomes part of a template, in which braces are expressions. */
export function givenImage(image: string): string {
  const parts = image.split("/");
  const last = parts.pop() ?? "";
  const end = last.search(/[:@]/);
  const name = end === -1 ? last : last.slice(0, end);
  const [registry = "", ...path] = parts;
  const isValid =
    NAME.test(name) &&
    (end === -1 || SUFFIX.test(last.slice(end))) &&
    (parts.length === 0 || REGISTRY.test(registry)) &&
    path.every((part) => NAME.test(part));
  if (isValid) return image;
  throw new UsageError(
    `--image ${quoted(image)} is not the name of an image; write it as REGISTRY/PATH:TAG or REGISTRY/PATH@DIGEST`,
  );
}
