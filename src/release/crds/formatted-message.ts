/**
 * A message with values in it, as a CEL expression. Each value is an expression of type string.
 * Not `+`: the API server cannot bound the length of `string(x)`, and refuses to join it to a text.
 */
export function formatted(message: string, values: readonly string[]): string {
  return `'${message}'.format([${values.join(", ")}])`;
}
