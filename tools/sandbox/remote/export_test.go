package remote

import (
	"context"
	"io"
	"strconv"
)

// WritePart is WriteFile of a file of size bytes, of which in has a part only. The temporary file is name with ".tmp".
func (r *Environment) WritePart(ctx context.Context, name string, in io.Reader, size int) error {
	_, err := r.call(ctx, "write", name, writeScript, in, name+".tmp", strconv.Itoa(size), "0644")
	return err
}
