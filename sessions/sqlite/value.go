package sqlite

import (
	"encoding/json"
	"fmt"
	"time"

	"herald/sessions"
)

// Value reads one value.
func (v *view) Value(space sessions.Space, name string) (val sessions.Value, err error) {
	val, ok := sessions.Value{Space: space, Name: name}, false
	err = v.c.query(v.ctx, "SELECT data, at FROM state WHERE space = ? AND name = ?", func(r row) error {
		val.Data, val.At, ok = json.RawMessage(r.text(0)), r.time(1), true
		return nil
	}, string(space), name)
	if err == nil && !ok {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return sessions.Value{}, fmt.Errorf("value %s/%s: %w", space, name, err)
	}
	return val, nil
}

// Values lists a space by name.
func (v *view) Values(space sessions.Space) (list []sessions.Value, err error) {
	err = v.c.query(v.ctx, "SELECT name, data, at FROM state WHERE space = ? ORDER BY name", func(r row) error {
		list = append(list, sessions.Value{Space: space, Name: r.text(0), Data: json.RawMessage(r.text(1)), At: r.time(2)})
		return nil
	}, string(space))
	if err != nil {
		return nil, fmt.Errorf("values of %s: %w", space, err)
	}
	return list, nil
}

// SetValue writes a value; nil data deletes it, and deleting what is not there is no error.
func (t *tx) SetValue(space sessions.Space, name string, data json.RawMessage, now time.Time) (err error) {
	switch {
	case data == nil:
		_, _, err = t.c.exec("DELETE FROM state WHERE space = ? AND name = ?", string(space), name)
	case !json.Valid(data):
		err = fmt.Errorf("the data is no JSON: %.60q", data)
	default:
		_, _, err = t.c.exec(`INSERT INTO state (space, name, data, at) VALUES (?, ?, ?, ?)
			ON CONFLICT (space, name) DO UPDATE SET data = excluded.data, at = excluded.at`, string(space), name, string(data), stamp(now))
	}
	if err != nil {
		return fmt.Errorf("value %s/%s: %w", space, name, err)
	}
	return nil
}
