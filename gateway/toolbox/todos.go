package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"herald/sessions"
	"herald/tools/todo"
)

// Todos keeps the lists of the todo tool as durable values.
type Todos struct {
	store sessions.Store
	log   zerolog.Logger
	now   func() time.Time
}

// NewTodos returns the lists of a profile.
func NewTodos(store sessions.Store, log zerolog.Logger, now func() time.Time) Todos {
	return Todos{store: store, log: log, now: now}
}

// Load implements todo.Store.
func (t Todos) Load(ctx context.Context, session string) (todo.List, error) {
	var l todo.List
	err := t.store.View(ctx, func(v sessions.View) error {
		value, err := v.Value(sessions.SpaceTodo, session)
		if err != nil {
			return err
		}
		return json.Unmarshal(value.Data, &l)
	})
	if errors.Is(err, sessions.ErrNotFound) {
		err = nil
	}
	return l, err
}

// Save implements todo.Store.
func (t Todos) Save(ctx context.Context, session string, l todo.List) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return t.store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		return tx.SetValue(sessions.SpaceTodo, session, data, t.now())
	})
}

// Reminder is the open part of a session's list, which a summary must not lose; "" for none.
func (t Todos) Reminder(ctx context.Context, session sessions.ID) string {
	list, err := t.Load(ctx, string(session))
	if err != nil {
		t.log.Warn().Err(err).Str("session", string(session)).Msg("the task list could not be kept across a summary")
		return ""
	}
	return todo.Reminder(list.Items)
}
