package config

import "reflect"

// Secrets returns the value of every secret that is set, for a redactor. The result is itself secret.
func (c *Config) Secrets() []string {
	var out []string
	collectSecrets(reflect.ValueOf(c).Elem(), &out)
	return out
}

func collectSecrets(v reflect.Value, out *[]string) {
	if s, ok := v.Interface().(Secret); ok {
		if s.IsSet() {
			*out = append(*out, s.Reveal())
		}
		return
	}
	if v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			collectSecrets(v.Field(i), out)
		}
	}
}
