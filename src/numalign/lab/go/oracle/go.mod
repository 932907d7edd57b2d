module numalign.io/lab/oracle

go 1.24.0
