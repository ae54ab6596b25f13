// Rows of the user's own table (data set "csv"), for networks that predict a number or a class.
//
// - The table is one file, from which the parts are cut, or train.csv with optional validation.csv and test.csv.
// - Input columns have numbers. Each is standardised: its mean in the training part is subtracted, and it is divided
//   by its standard deviation there. So is a target that is a number. A column with one value becomes 0.
// - Classes are the texts of the target column in the training part, in the order of their bytes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/datasets/datasets.h"

namespace trainyard::models {

// Whether `place` is a file *.csv, or a folder with data.csv or train.csv. Checks names only.
bool holds_table(const std::filesystem::path& place);

// `facts` and `read` (datasets.h) for rows of a table.
// UserError with file, line and column for a value that is missing, not a finite number, or a class that is not in
// the training part.
DataFacts row_facts(const Dataset& source, const std::filesystem::path& place, const DataChoice& choice);
Splits read_rows(const DataChoice& choice);
std::vector<std::string> row_class_names(const DataChoice& choice);  // none if targets are numbers

}  // namespace trainyard::models
