package tree

import (
	"reflect"

	"herald/platforms"
)

// Secrets returns the value of every secret that is set in a struct of type Root, for a redactor. The result is itself
// secret.
func (t *Tree) Secrets(settings any) []string {
	var out []string
	collectSecrets(t.root, valueOf(settings), &out)
	return out
}

func collectSecrets(k *key, v reflect.Value, out *[]string) {
	for _, f := range k.fields {
		fv := f.get(v)
		if f.typ != secretType {
			collectSecrets(f, fv, out)
		} else if s := fv.Interface().(platforms.Secret); s.IsSet() {
			*out = append(*out, s.Reveal())
		}
	}
}
