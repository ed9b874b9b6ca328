/** Of a resource, in characters. Names of nodes and pods become parts of names and keys, so none of them is longer. */
export const LONGEST_NAME = 253;
