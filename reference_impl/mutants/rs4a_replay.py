MUTANTS: tuple[()] = ()
