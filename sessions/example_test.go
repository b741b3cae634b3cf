package sessions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"herald/sessions"
	"herald/sessions/sqlite"
)

// Every change is a closure that is handed to Update with the name of its commit edge. It sees what it wrote itself; what it
// returns an error for has not happened; and when Update has returned nil, it is on disk.
func ExampleStore_update() {
	dir, err := os.MkdirTemp("", "herald-example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	opened, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "herald.db"), Log: zerolog.Nop()})
	if err != nil {
		panic(err)
	}
	defer opened.Close()
	var store sessions.Store = opened

	at := time.Unix(1_800_000_000, 0)
	err = store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		if err := tx.SetValue(sessions.SpaceTodo, "one", json.RawMessage(`["milk"]`), at); err != nil {
			return err
		}
		v, err := tx.Value(sessions.SpaceTodo, "one")
		fmt.Println("inside:", string(v.Data))
		return err
	})
	fmt.Println("kept:", err)

	err = store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		if err := tx.SetValue(sessions.SpaceTodo, "two", json.RawMessage(`["bread"]`), at); err != nil {
			return err
		}
		return errors.New("the person has changed their mind")
	})
	fmt.Println("not kept:", err)

	err = store.View(ctx, func(v sessions.View) error {
		_, err := v.Value(sessions.SpaceTodo, "two")
		fmt.Println("gone:", errors.Is(err, sessions.ErrNotFound))
		return nil
	})
	if err != nil {
		panic(err)
	}
	// Output:
	// inside: ["milk"]
	// kept: <nil>
	// not kept: the person has changed their mind
	// gone: true
}
