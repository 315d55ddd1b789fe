// Times SimGrid's own max-min solver on a system in a file, and writes the rates it finds.
//
// Compiled by solve_families.py against Debian's libsimgrid and, since the solver's headers are not
// installed, the source tree of the same version (apt-get source simgrid).
//
// File: int64 resources, demands, entries; then doubles capacities; int64 starts, resources;
// doubles multiplicities, weights. Output: doubles build seconds, solve seconds, rates.
#include "src/kernel/lmm/System.hpp"
#include "src/kernel/lmm/maxmin.hpp"

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <vector>

namespace lmm = simgrid::kernel::lmm;

template <class T> static std::vector<T> read(std::FILE* file, std::size_t count)
{
  std::vector<T> values(count);
  if (std::fread(values.data(), sizeof(T), count, file) != count)
    std::exit(2);
  return values;
}

static double now()
{
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(int, char** argv)
{
  std::FILE* file = std::fopen(argv[1], "rb");
  auto sizes = read<std::int64_t>(file, 3);
  auto capacities = read<double>(file, sizes[0]);
  auto starts = read<std::int64_t>(file, sizes[1] + 1);
  auto resources = read<std::int64_t>(file, sizes[2]);
  auto multiplicities = read<double>(file, sizes[2]);
  auto weights = read<double>(file, sizes[1]);
  std::fclose(file);

  double start = now();
  lmm::MaxMin system(false);
  std::vector<lmm::Constraint*> constraints;
  for (double capacity : capacities)
    constraints.push_back(system.constraint_new(nullptr, capacity));
  std::vector<lmm::Variable*> variables;
  for (std::int64_t demand = 0; demand < sizes[1]; demand++) {
    auto* variable = system.variable_new(nullptr, 1.0 / weights[demand], -1.0, starts[demand + 1] - starts[demand]);
    for (std::int64_t entry = starts[demand]; entry < starts[demand + 1]; entry++)
      system.expand(constraints[resources[entry]], variable, multiplicities[entry]);
    variables.push_back(variable);
  }
  double built = now();
  system.solve();
  std::vector<double> answer = {built - start, now() - built};
  for (auto* variable : variables)
    answer.push_back(variable->get_value());

  file = std::fopen(argv[2], "wb");
  std::fwrite(answer.data(), sizeof(double), answer.size(), file);
  std::fclose(file);
  std::_Exit(0); // taking a million elements apart is not what is measured
}
