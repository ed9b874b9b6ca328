// Renders templates of a mesh's injector with simple values: its own program needs a whole mesh.
module parts.invalid/injection

go 1.25.0
