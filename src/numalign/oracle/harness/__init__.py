"""What all comparisons share: oracle programs, cases, differences, suites, random draws and shrinking."""
