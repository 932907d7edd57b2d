// The program in the test image of labs with real containers: it waits, serves, and tells what a container sees.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const account = "/var/run/secrets/kubernetes.io/serviceaccount/"

func main() {
	args := os.Args[1:]
	if len(args) == 0 {
		args = []string{"wait"}
	}
	answer, err := run(args[0], args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(answer)
}

func run(command string, args []string) (string, error) {
	switch command {
	case "wait":
		name, err := os.Hostname()
		fmt.Println(append([]string{"hello from " + name}, args...))
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		<-signals
		return "asked to end", err
	case "serve":
		return "", http.ListenAndServe(args[0], http.HandlerFunc(func(to http.ResponseWriter, _ *http.Request) {
			name, _ := os.Hostname()
			fmt.Fprint(to, name)
		}))
	case "get":
		return get(&http.Client{Timeout: 5 * time.Second}, args[0], "")
	case "api":
		return ask(args[0])
	case "connect":
		connection, err := net.DialTimeout("tcp", args[0], 2*time.Second)
		if err == nil {
			connection.Close()
		}
		return "connected", err
	case "cat":
		text, err := os.ReadFile(args[0])
		return strings.TrimSpace(string(text)), err
	case "write":
		return "written", os.WriteFile(args[0], []byte("written"), 0o644)
	}
	return "", fmt.Errorf("%s: no such command", command)
}

// ask sends a request to the API server as every client in a pod does.
func ask(path string) (string, error) {
	token, err := os.ReadFile(account + "token")
	if err != nil {
		return "", err
	}
	authority, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		return "", err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	client := &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}},
	}
	host := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	return get(client, "https://"+host+path, string(token))
}

func get(client *http.Client, url, token string) (string, error) {
	request, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return fmt.Sprintf("%d %s", answer.StatusCode, body), err
}
