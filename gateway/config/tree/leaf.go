package tree

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"herald/platforms"
)

// badValue is why a text is no value for a key. Its text says what is allowed, never what the value was.
type badValue struct{ allowed string }

func (e badValue) Error() string { return "want " + e.allowed }

// set parses text into a leaf that is no list. On an error the value is unchanged.
func (k *key) set(v reflect.Value, text string) error {
	if v.Kind() == reflect.Pointer {
		p := reflect.New(v.Type().Elem())
		if err := k.set(p.Elem(), text); err != nil {
			return err
		}
		v.Set(p)
		return nil
	}
	bad := badValue{k.allowed(v.Type())}
	trimmed := strings.TrimSpace(text)
	if slices.Contains(k.words, strings.ToLower(trimmed)) {
		v.SetZero()
		return nil
	}
	switch {
	case v.Type() == secretType:
		if why := placeholder(text); why != "" {
			return fmt.Errorf("the value %s; put the real one there, or remove it", why)
		}
		if _, err := check(k.check, trimmed); err != nil {
			return err
		}
		v.Set(reflect.ValueOf(platforms.NewSecret(trimmed)))
	case v.Type() == rateType:
		r, err := platforms.ParseRate(text)
		if err != nil {
			return bad
		}
		v.Set(reflect.ValueOf(r))
	case v.Type() == bytesType:
		b, err := ParseBytes(text)
		lo, _ := ParseBytes(k.min)
		hi, _ := ParseBytes(k.max)
		if err != nil || b < lo || b > hi {
			return bad
		}
		v.SetInt(int64(b))
	case v.Type() == durationType:
		d, err := parseDuration(trimmed)
		lo, _ := time.ParseDuration(k.min)
		hi, _ := time.ParseDuration(k.max)
		if err != nil || d < lo || d > hi {
			return bad
		}
		v.SetInt(int64(d))
	case v.Kind() == reflect.Bool:
		b, err := parseBool(trimmed)
		if err != nil {
			return bad
		}
		v.SetBool(b)
	case v.Kind() == reflect.Int:
		n, err := strconv.Atoi(strings.ReplaceAll(trimmed, "_", ""))
		lo, _ := strconv.Atoi(k.min)
		hi, _ := strconv.Atoi(k.max)
		if err != nil || n < lo || n > hi {
			return bad
		}
		v.SetInt(int64(n))
	case v.Kind() == reflect.Float64:
		n, err := strconv.ParseFloat(trimmed, 64)
		lo, _ := strconv.ParseFloat(k.min, 64)
		hi, _ := strconv.ParseFloat(k.max, 64)
		if err != nil || math.IsNaN(n) || n < lo || n > hi {
			return bad
		}
		v.SetFloat(n)
	case v.Kind() == reflect.String:
		s, err := k.text(text)
		if err != nil {
			return err
		}
		v.SetString(s)
	default:
		return fmt.Errorf("%s cannot be set from a text", k.path)
	}
	return nil
}

// text checks one string against the key's choices and its check, and returns the form to keep.
func (k *key) text(s string) (string, error) {
	if len(k.oneof) > 0 {
		low := strings.ToLower(strings.TrimSpace(s))
		if low == "" && !k.hasDef {
			return "", nil
		}
		switch {
		case slices.Contains(k.oneof, low):
			return low, nil
		case slices.Contains([]string{"false", "no"}, low) && slices.Contains(k.oneof, "off"):
			return "off", nil // YAML's old booleans
		}
		return "", badValue{k.allowed(reflect.TypeFor[string]())}
	}
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return "", badValue{"text without zero bytes, in UTF-8"}
	}
	if s == "" {
		return "", nil
	}
	return check(k.check, s)
}

// allowed says in words what a value of the key may be.
func (k *key) allowed(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	between := ""
	if k.max != "" {
		between = " from " + k.min + " to " + k.max
	}
	words := ""
	if len(k.words) > 0 {
		words = ", or " + k.words[0]
	}
	switch {
	case len(k.oneof) > 0:
		return "one of " + strings.Join(k.oneof, ", ")
	case t == secretType:
		return "a secret of at least 4 characters"
	case t == rateType:
		return "on, off, or messages a second"
	case t == bytesType:
		return "a size such as 10MB or 128MiB" + between
	case t == durationType:
		return "a time such as 30s or 5m, or seconds," + between
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Int:
		return "a whole number" + between + words
	case t.Kind() == reflect.Float64:
		return "a number" + between
	case t.Kind() == reflect.Slice:
		return "a list"
	case t.Kind() == reflect.Map, t.Kind() == reflect.Struct:
		return "keys with values"
	}
	if _, err := check(k.check, "\x00"); err != nil {
		return strings.TrimPrefix(err.Error(), "want ")
	}
	return "a text"
}

// parseDuration reads 30s, 1.5h, 1h30m, or bare seconds.
func parseDuration(s string) (time.Duration, error) {
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		if math.IsNaN(n) || math.Abs(n) > 1e9 {
			return 0, fmt.Errorf("out of range")
		}
		return time.Duration(n * float64(time.Second)), nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || math.IsNaN(n) || math.Abs(n) > 1e5 {
			return 0, fmt.Errorf("out of range")
		}
		return time.Duration(n * 24 * float64(time.Hour)), nil
	}
	return time.ParseDuration(s)
}

// parseBool reads the words people use; upper and lower case are the same.
func parseBool(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return false, fmt.Errorf("not a boolean")
}
