// The command with workers that answer, dawdle, refuse, panic, spin and die on demand: this test binary is its own worker.

package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

var runs int

// demand is what a case of this oracle does, by its family.
var demand = map[string]func() (any, error){
	"answer": func() (any, error) { return "fine", nil },
	"dawdle": func() (any, error) { time.Sleep(30 * time.Millisecond); return "late", nil },
	"vary":   func() (any, error) { runs++; return runs, nil },
	"refuse": func() (any, error) { return nil, Refused{Why: "too long"} },
	"fail":   func() (any, error) { return nil, errors.New("no such thing") },
	"panic":  func() (any, error) { panic("nil map") },
	"die":    func() (any, error) { fmt.Fprintln(os.Stderr, "last words"); os.Exit(3); return nil, nil },
	"spin": func() (any, error) {
		for {
			runs++
		}
	},
	"sleep":   func() (any, error) { time.Sleep(time.Hour); return nil, nil },
	"process": func() (any, error) { return os.Getpid(), nil },
}

func toy() Oracle {
	return Oracle{Name: "toy", Prepare: func() (Ask, bool, error) { return answer, true, nil }}
}

func answer(family string, line []byte) (any, error) {
	said, err := demand[family]()
	return map[string]any{"id": idOf(line), "said": said}, err
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-worker" {
		Main(toy())
		return
	}
	os.Exit(m.Run())
}

// asked puts cases of these families to the command; each case's id is its place.
func asked(t *testing.T, oracle Oracle, s settings, families ...string) []map[string]any {
	t.Helper()
	var in, out bytes.Buffer
	for place, family := range families {
		fmt.Fprintf(&in, "{\"id\": \"%d\", \"family\": %q}\n", place, family)
	}
	if err := serve(oracle, s, &in, &out); err != nil {
		t.Fatal(err)
	}
	return read(t, out.String())
}

func read(t *testing.T, text string) []map[string]any {
	t.Helper()
	var answers []map[string]any
	for line := range strings.Lines(text) {
		var answer map[string]any
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, answer)
	}
	return answers
}

func quick(workers int) settings {
	return settings{workers: workers, repeat: 2, limit: 200 * time.Millisecond}
}

func TestAnswersComeInTheOrderOfTheCases(t *testing.T) {
	var families []string
	for place := range 60 {
		families = append(families, []string{"dawdle", "answer", "answer", "die", "answer"}[place%5])
	}
	for place, answer := range asked(t, toy(), quick(3), families...) {
		if answer["id"] != fmt.Sprint(place) {
			t.Fatalf("answer %d is to case %v", place, answer["id"])
		}
	}
}

func TestWhatHappensInsteadOfAnAnswerIsSaid(t *testing.T) {
	for family, said := range map[string]string{
		"answer": `"said":"fine"`,
		"vary":   `"nondeterministic":true`,
		"refuse": `"refused":"too long"`,
		"fail":   `"error":"no such thing"`,
		"panic":  `"panic":"nil map in numalign.io/lab/oracle/program`,
		"die":    `"panic":"the worker died, exit status 3: last words"`,
		"spin":   `"timeout":true`,
	} {
		text, _ := json.Marshal(asked(t, toy(), quick(1), family)[0])
		if !strings.Contains(string(text), said) {
			t.Errorf("%s: %s does not say %s", family, text, said)
		}
	}
}

func TestACaseThatSleepsIsGivenUpByTheClock(t *testing.T) {
	s := quick(1)
	s.limit = 20 * time.Millisecond
	if answer := asked(t, toy(), s, "sleep")[0]; answer["timeout"] != true {
		t.Errorf("answered %v", answer)
	}
}

func TestCasesBehindALostWorkerAreAnsweredByTheNext(t *testing.T) {
	answers := asked(t, toy(), quick(1), "process", "die", "process", "spin", "process", "panic", "process")
	said := map[any]bool{}
	for _, place := range []int{0, 2, 4, 6} {
		said[answers[place]["said"]] = true
	}
	if len(said) != 3 || said[nil] {
		t.Errorf("four cases, a death and a livelock between them, were answered by processes %v", said)
	}
}

func TestAWorkerIsRelievedAfterItsLifetime(t *testing.T) {
	oracle := toy()
	oracle.Lifetime = 2
	said := map[any]int{}
	for _, answer := range asked(t, oracle, quick(1), strings.Fields(strings.Repeat("process ", 40))...) {
		said[answer["said"]]++
	}
	for process, answers := range said {
		if answers > oracle.Lifetime+ahead {
			t.Errorf("process %v answered %d cases", process, answers)
		}
	}
	if len(said) < 2 {
		t.Errorf("nobody was relieved")
	}
}

func TestALineThatIsNoCaseIsAnsweredToo(t *testing.T) {
	var out bytes.Buffer
	if err := serve(toy(), quick(1), strings.NewReader("{\n{\"id\": \"1\", \"family\": \"answer\"}"), &out); err != nil {
		t.Fatal(err)
	}
	answers := read(t, out.String())
	if len(answers) != 2 || !strings.HasPrefix(fmt.Sprint(answers[0]["error"]), "not a case") || answers[1]["said"] != "fine" {
		t.Errorf("answered %v", answers)
	}
}

func TestWithoutAWorkerEveryCaseIsToldWhy(t *testing.T) {
	oracle := toy()
	oracle.Arguments = func() []string { return []string{"-unheard-of"} }
	var out bytes.Buffer
	err := serve(oracle, quick(1), strings.NewReader("{\"id\": \"1\", \"family\": \"answer\"}\n"), &out)
	answers := read(t, out.String())
	if err == nil || len(answers) != 1 || !strings.Contains(fmt.Sprint(answers[0]["error"]), "a worker does not start") {
		t.Errorf("error %v, answers %v", err, answers)
	}
}
