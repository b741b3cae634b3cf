package tools_test

import (
	"context"
	"encoding/json"
	"fmt"

	"herald/tools"
)

// A tool is a declaration with a function. The bus repairs and checks the arguments, asks whether the call may run, and
// returns what the model is to see, whatever goes wrong.
func ExampleBus() {
	registry := tools.NewRegistry(tools.RegistryOptions{})
	err := registry.Register(tools.Tool{
		Spec: tools.Spec{Name: "double", Toolset: "numbers", Description: "Doubles a number.", ReadOnly: true, Parallel: tools.Safe,
			Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)},
		Run: func(_ context.Context, call tools.Call) (tools.Result, error) {
			var args struct{ N int }
			if err := json.Unmarshal(call.Args, &args); err != nil {
				return tools.Result{}, err
			}
			return tools.JSON(map[string]int{"result": 2 * args.N}), nil
		},
	})
	if err != nil {
		panic(err)
	}
	bus := tools.NewBus(tools.Options{Registry: registry})
	defer bus.Close(context.Background())
	bus.Subscribe(func(e tools.Event) { fmt.Println("event:", e.Phase, e.Call.Name) })

	// Models write numbers as text; the bus knows what the schema wants.
	result := bus.Dispatch(context.Background(), tools.Call{ID: "1", Name: "double", Args: json.RawMessage(`{"n":"21"}`)})
	fmt.Println(result.Exit, result.Content)

	// A call that can't be right is not run, and says how to repair it.
	result = bus.Dispatch(context.Background(), tools.Call{ID: "2", Name: "double", Args: json.RawMessage(`{}`)})
	fmt.Println(result.Exit, result.IsError)
	// Output:
	// event: started double
	// event: finished double
	// ok {"result":42}
	// event: finished double
	// invalid true
}
