package platforms_test

import (
	"context"
	"errors"
	"fmt"

	"herald/platforms"
)

// bell is the smallest adapter: one chat, whose messages come from a channel and whose answers are printed.
type bell struct{ said chan string }

func (b *bell) Account() platforms.Account { return platforms.Account{Platform: "bell", ID: "door"} }

func (b *bell) Traits() platforms.Traits {
	return platforms.Traits{Text: platforms.TextTraits{Dialect: platforms.Plain, Limit: 200, Unit: platforms.CodePoints}}
}

func (b *bell) Health() platforms.Health { return platforms.Health{Inbound: true, State: "connected"} }

// Run hands each message on, and would acknowledge it to its platform only after Accept has returned nil (P1). What was
// refused is offered again with the same id, so that nothing is taken twice (P2).
func (b *bell) Run(ctx context.Context, sink platforms.Sink) error {
	n := 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case text := <-b.said:
			n++
			event := platforms.Event{
				ID: platforms.EventID(fmt.Sprint(n)), ChatType: platforms.DM, Addressed: true,
				Address: platforms.Address{Platform: "bell", Account: "door", Chat: "porch"},
				Sender:  platforms.User{ID: "visitor"},
				Message: &platforms.Message{ID: platforms.MessageID(fmt.Sprint(n)), Text: text},
			}
			for sink.Accept(ctx, event) != nil && ctx.Err() == nil {
				fmt.Println("refused, offered again")
			}
			fmt.Println("acknowledged")
		}
	}
}

// Send delivers one message. Its errors say what is certain: not sent, or unknown.
func (b *bell) Send(_ context.Context, out platforms.Outgoing) (platforms.Receipt, error) {
	if out.Edit != "" {
		return platforms.Receipt{}, &platforms.SendError{Kind: platforms.Unsupported, Err: errors.New("a bell can't be unrung")}
	}
	fmt.Println("ding:", out.Text.AsPlain())
	return platforms.Receipt{Message: "1"}, nil
}

// inbox takes events, all but the first time.
type inbox struct {
	tries int
	taken chan platforms.Event
}

func (i *inbox) Accept(_ context.Context, events ...platforms.Event) error {
	if i.tries++; i.tries == 1 {
		return platforms.ErrRefused
	}
	for _, e := range events {
		i.taken <- e
	}
	return nil
}

// An adapter carries one account: Run brings events to the sink, Send takes messages back to the same address.
func ExampleAdapter() {
	var adapter platforms.Adapter = &bell{said: make(chan string, 1)}
	sink := &inbox{taken: make(chan platforms.Event, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- adapter.Run(ctx, sink) }()

	adapter.(*bell).said <- "anybody home?"
	event := <-sink.taken
	cancel()
	fmt.Println("ended:", <-ended)

	_, err := adapter.Send(context.Background(), platforms.Outgoing{Address: event.Address, Text: platforms.Text{Plain: "coming"}})
	fmt.Println("sent:", err)
	_, err = adapter.Send(context.Background(), platforms.Outgoing{Address: event.Address, Edit: "1"})
	fmt.Println("edited:", err != nil)
	// Output:
	// refused, offered again
	// acknowledged
	// ended: <nil>
	// ding: coming
	// sent: <nil>
	// edited: true
}
