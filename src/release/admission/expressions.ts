/** Parts of the CEL expressions of the admission policies. A pod has no `oldObject` while it is created, and may have no annotations. */

interface Variable {
  readonly name: string;
  readonly expression: string;
}

export const NEW_ANNOTATIONS: Variable = {
  name: "annotations",
  expression: "object.metadata.?annotations.orValue({})",
};

export const FORMER_ANNOTATIONS: Variable = {
  name: "former",
  expression: "oldObject == null ? {} : oldObject.metadata.?annotations.orValue({})",
};

/**
 * What a line of the list may permit: the pod's namespace, and its service account.
 * Not the account of the request, which is that of a controller for most pods.
 */
export const SUBJECTS: Variable = {
  name: "subjects",
  expression: "[request.namespace, request.namespace + '/' + object.spec.?serviceAccountName.orValue('')]",
};

/** A string constant. */
export function constant(text: string): string {
  return `'${text.replace(/[\\']/g, (character) => `\\${character}`)}'`;
}

/** The object has one of these annotations. Conditions cannot use variables. */
export function someOf(keys: readonly string[]): string {
  return `[${keys.map(constant).join(", ")}].exists(key, key in ${NEW_ANNOTATIONS.expression})`;
}

/** Removing an annotation, and leaving it as it is, are always allowed: a pod that has it must remain usable. */
export function addsOrChanges(key: string): string {
  return `${constant(key)} in variables.annotations && ${changes(key)}`;
}

/** Adding, changing and removing. */
export function changes(key: string): string {
  return `variables.annotations[?${constant(key)}] != variables.former[?${constant(key)}]`;
}

/** The list has a line for the pod under this key. */
export function permits(key: string): string {
  return `params.?data[?${constant(key)}].orValue('').split('\\n').exists(line, line.trim() in variables.subjects)`;
}

export const REQUESTER_MAY_PATCH_STATUS =
  "authorizer.group('').resource('pods').subresource('status').namespace(request.namespace).check('patch').allowed()";

const LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

/** Neither empty nor a comment. */
export function isEntry(line: string): string {
  return `${line}.trim().matches('^[^#]')`;
}

export function isWellFormedLine(line: string): string {
  return `${line}.trim().matches(${constant(`^(#.*|${LABEL}(/${LABEL}([.]${LABEL})*)?)?$`)})`;
}
